package application

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// maxModules bounds the modules whose decisions are counted; the oldest goes first.
const maxModules = 64

// policyRecord is who decides, and how it went.
type policyRecord struct {
	policy, by string
	decisions  []DecisionCount
	swaps      uint32
	faults     uint64
	lastFault  string
	faulty     bool // the newest decision was not the bound policy's own
	violations []ViolationCount
}

// pass begins a pass: what is overdue is given up first, so that the policy sees it.
func (a *Application) pass() {
	a.giveUp()
	a.clean()
	a.put(a.alloc.Pass(a.now, a.scene()))
}

func (a *Application) put(ask allocator.Ask) {
	a.emit(AskPolicy{Number: ask.Number, Input: ask.Input, Builtin: ask.Builtin})
}

// scene is what a question or an answer is about.
func (a *Application) scene() allocator.Scene {
	s := allocator.Scene{Fleet: a.store, Shown: a.store.Snapshot, Profiles: make([]allocator.Circumstance, len(a.cfg.Profiles))}
	for i := range a.cfg.Profiles {
		s.Profiles[i] = a.circumstance(i)
	}
	return s
}

func (a *Application) circumstance(i int) allocator.Circumstance {
	k := a.kinds[i]
	c := allocator.Circumstance{Demand: a.book.Demand(a.cfg.Profiles[i].ID), Failures: k.failures.count(a.now)}
	if until, backing := k.backoff.Until(); backing {
		c.Backoff = until
	}
	switch room := k.backoff.Room(a.now); room {
	case math.MaxUint32:
	case 0:
		c.Blocked = k.backoff.Describe(a.now)
	default:
		c.AtOnce = room
	}
	return c
}

func (a *Application) decided(ev Decided) {
	v, ok := a.alloc.Answer(a.now, ev.Number, ev.Decision, a.scene())
	if !ok {
		return
	}
	a.policy.count(ev)
	if a.policy.faulty = ev.Fault != ""; a.policy.faulty {
		a.tell(NoticePolicyFault, 0, "the built-in policy answered instead: "+ev.Fault)
	}
	a.overrule(v.Violations)
	a.carry(v.Plan)
	if ask, more := a.alloc.Go(a.now, v, a.scene()); more {
		a.put(ask)
	}
}

func (p *policyRecord) count(ev Decided) {
	p.policy, p.by = cmp.Or(p.policy, ev.Policy), cmp.Or(p.by, ev.By)
	if ev.Fault != "" {
		p.faults++
		p.lastFault = ev.Fault
	}
	i := slices.IndexFunc(p.decisions, func(c DecisionCount) bool { return c.By == ev.By && c.Policy == ev.Policy })
	if i < 0 {
		if len(p.decisions) == maxModules {
			p.decisions = slices.Delete(p.decisions, 0, 1)
		}
		i = len(p.decisions)
		p.decisions = append(p.decisions, DecisionCount{Policy: ev.Policy, By: ev.By})
	}
	p.decisions[i].Count++
}

// overrule takes note of what the guard did not let through. Races that the policy could not win are counted and not told.
func (a *Application) overrule(violations []guard.Violation) {
	var told []guard.Violation
	for _, v := range violations {
		a.policy.violate(string(v.Rule))
		if v.Rule != guard.ReleaseMoot && v.Rule != guard.CreateBlocked {
			told = append(told, v)
		}
	}
	switch len(told) {
	case 0:
	case 1:
		a.tell(NoticePolicyOverruled, 0, told[0].Detail)
	default:
		a.tell(NoticePolicyOverruled, 0, fmt.Sprintf("%s (and %d more)", told[0].Detail, len(told)-1))
	}
}

func (p *policyRecord) violate(rule string) {
	i, there := slices.BinarySearchFunc(p.violations, rule, func(c ViolationCount, rule string) int { return cmp.Compare(c.Rule, rule) })
	if !there {
		p.violations = slices.Insert(p.violations, i, ViolationCount{Rule: rule})
	}
	p.violations[i].Count++
}

// carry does what a plan says.
func (a *Application) carry(plan guard.Plan) {
	releases := plan.Releases()
	for _, r := range releases {
		a.release(r.Executor, r.Mode, cmp.Or(r.Reason, "the policy let it go"))
	}
	a.alloc.Spent(a.now, uint32(len(releases)))
	a.clean()
	for _, c := range plan.Creates() {
		for range c.Count {
			a.create(c)
		}
		a.alloc.Spent(a.now, c.Count)
	}
}

func (a *Application) create(c guard.Create) {
	id, name := a.unusedID()
	a.store.Assume(a.now, snapshot.Executor{ID: id, Profile: c.Profile, Name: name})
	k := a.kind(c.Profile)
	k.backoff.Requested(a.now, id)
	k.created++
	if e, ok := a.store.Executor(id); ok {
		a.awaitPod(&e)
	}
	a.emit(CreatePod{Executor: id, Profile: c.Profile, Name: name, Zone: c.Zone, Capacity: c.Capacity, Node: c.Node, Reason: c.Reason})
}

// awaitPod sees to it that a request is given up if nobody sees its pod for longer than the profile allows.
func (a *Application) awaitPod(e *snapshot.Executor) {
	if i, ok := a.cfg.profile(e.Profile); ok {
		a.unseen.add(e.Asked.Add(a.cfg.Profiles[i].CreationTimeout)+1, e.ID) // longer than the timeout, not as long
	}
}

func (a *Application) policyBound(ev PolicyBound) {
	if ev.By == a.policy.by && ev.Policy == a.policy.policy && (ev.Mode == 0 || ev.Mode == a.cfg.Mode) {
		return // that is known
	}
	if a.policy.by != "" && ev.By != a.policy.by {
		a.policy.swaps++
	}
	a.policy.policy, a.policy.by = ev.Policy, ev.By
	if ev.Mode != 0 {
		a.cfg.Mode = ev.Mode
		a.alloc.SetMode(ev.Mode)
	}
	a.tell(NoticePolicyBound, 0, fmt.Sprintf("%s (%s) decides from now on", ev.Policy, ev.By))
	a.note(hostabi.TriggerStart, true)
}
