// Package allocator decides when to ask a policy, what it is shown, and what its answer comes to.
//
// It promises:
//
//   - one question is in flight at most; an answer to another one is dropped;
//   - a pass asks what to let go first, and then, with a fresh view, what to create;
//   - no two passes begin within Config.Batch, whatever happens and whatever the policy wishes;
//   - a question that is not answered in time is put to the built-in policy;
//   - an answer is checked against the fleet as it is when the answer comes.
//
// It is pure: time and the fleet come in with each call.
package allocator

import (
	"cmp"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// Config is what the allocator must know of an application.
type Config struct {
	Application string
	Epoch       int64 // wall clock at Instant 0, milliseconds since 1970
	Seed        uint64
	Profiles    []Profile // ascending by ID
	Mode        Mode
	MaxPending  uint32 // over all profiles; 0: no bound
	MaxLifetime uint64 // executors ever created; 0: no bound
	Churn       uint32 // most creations and releases a minute; 0: no bound
	Grants      guard.Grants
	Batch       time.Duration // how long to gather changes; no two passes begin closer together
	Resync      time.Duration // the longest without asking
	Deadline    time.Duration // the longest to wait for an answer
}

// Fleet is what there is and what is wanted: a snapshot.Store or a Snapshot.
type Fleet interface {
	guard.Reader
	Target(p snapshot.Profile) uint32
}

// Ask is a question to be put to a policy.
type Ask struct {
	Number  uint64
	Input   *Input
	Builtin bool // the bound policy did not answer in time
}

// Verdict is what a decision comes to.
type Verdict struct {
	Hook       hostabi.Hook
	Plan       guard.Plan
	Violations []guard.Violation
	Builtin    bool // the question was put to the built-in policy because the bound one did not answer in time
}

// Allocator asks policies on behalf of one application.
type Allocator struct {
	cfg          Config
	origin       snapshot.Instant // when the application began
	pace         pace
	flight       flight
	newest       uint64 // number of the newest question
	last         snapshot.ID
	churn        churn
	ramps        []ramp // as cfg.Profiles
	state        []byte // what the policy returned last
	stateVersion uint32
}

// flight is a question that is not answered yet. Number 0: there is none.
type flight struct {
	number   uint64
	hook     hostabi.Hook
	builtin  bool
	deadline snapshot.Instant
	trigger  hostabi.Trigger
	wish     snapshot.Instant // when the policy wants to be asked again, of the answers of this pass so far
}

// New returns an allocator that has not asked anything.
func New(cfg Config) *Allocator {
	a := &Allocator{}
	a.Configure(cfg)
	return a
}

// Configure changes the configuration. A question in flight stays, and its answer is checked by the new one.
func (a *Allocator) Configure(cfg Config) {
	ramps := make([]ramp, len(cfg.Profiles))
	for i, p := range cfg.Profiles {
		if old, ok := find(a.cfg.Profiles, p.ID); ok {
			ramps[i] = a.ramps[old]
		}
	}
	a.cfg, a.ramps = cfg, ramps
	a.pace.batch, a.pace.resync = cfg.Batch, cfg.Resync
}

// Begin says when the application began. Policies see times as distances from there.
func (a *Allocator) Begin(now snapshot.Instant) { a.origin = now }

// SetMode changes how far the policy's word goes.
func (a *Allocator) SetMode(m Mode) { a.cfg.Mode = m }

// Mode is how far the policy's word goes.
func (a *Allocator) Mode() Mode { return a.cfg.Mode }

// NextID hands out the number of a new executor. It was never used before.
func (a *Allocator) NextID() snapshot.ID {
	a.last++
	return a.last
}

// Saw notes that a number is in use, whoever handed it out.
func (a *Allocator) Saw(id snapshot.ID) { a.last = max(a.last, id) }

// Created is how many executors were ever created, as far as their numbers tell.
func (a *Allocator) Created() uint64 { return uint64(a.last) }

// Spent notes that executors were created or let go, for the bound on churn.
func (a *Allocator) Spent(now snapshot.Instant, n uint32) { a.churn.add(now, n) }

// Note takes down that something has changed. An urgent change is asked about at once if the last pass is not too recent.
func (a *Allocator) Note(now snapshot.Instant, why hostabi.Trigger, urgent bool) {
	a.pace.note(now, why, urgent, a.flight.number != 0)
}

// Force makes a pass due, however recent the last one is. One that is going on is not disturbed, and another follows.
func (a *Allocator) Force(now snapshot.Instant) { a.pace.force(now, a.flight.number != 0) }

// Due reports whether a pass is to begin: Force was called, or an urgent change need not wait.
func (a *Allocator) Due() bool { return a.flight.number == 0 && a.pace.ripe }

// NextAsk is when a pass will be due, 0 while a question is in flight or nothing is known to ask about.
func (a *Allocator) NextAsk() snapshot.Instant {
	if a.flight.number != 0 {
		return 0
	}
	return a.pace.due
}

// NextLate is when the question in flight is late, 0 if there is none.
func (a *Allocator) NextLate() snapshot.Instant { return a.flight.deadline }

// Pass begins a pass: it returns the question what to let go.
func (a *Allocator) Pass(now snapshot.Instant, s Scene) Ask {
	why := a.pace.begin(now)
	a.flight = flight{trigger: why}
	return a.ask(now, hostabi.HookRelease, false, s)
}

// Go returns the question what to create, after the answer to the one before was carried out. It reports false if the pass is over.
func (a *Allocator) Go(now snapshot.Instant, v Verdict, s Scene) (Ask, bool) {
	if v.Hook != hostabi.HookRelease {
		return Ask{}, false
	}
	a.pace.resume()
	return a.ask(now, hostabi.HookAllocate, false, s), true
}

// Late puts the question in flight to the built-in policy, with a fresh view and a new number, if it is late. It reports false if it is not.
func (a *Allocator) Late(now snapshot.Instant, s Scene) (Ask, bool) {
	if a.flight.number == 0 || now < a.flight.deadline {
		return Ask{}, false
	}
	return a.ask(now, a.flight.hook, true, s), true
}

// Drop forgets the question in flight: its answer is of no interest any more.
func (a *Allocator) Drop() { a.flight = flight{} }

// Answer checks a decision against the fleet of this moment. It reports false for an answer that nobody waits for.
func (a *Allocator) Answer(now snapshot.Instant, number uint64, d hostabi.Decision, s Scene) (Verdict, bool) {
	if number == 0 || number != a.flight.number {
		return Verdict{}, false
	}
	if d.StateVersion != 0 {
		a.state, a.stateVersion = slices.Clone(d.State), d.StateVersion
	}
	f := &a.flight
	v := Verdict{Hook: f.hook, Builtin: f.builtin}
	v.Plan, v.Violations = guard.Check(a.limits(now, s), s.Fleet, only(f.hook, d))
	if d.NextCallMS > 0 {
		f.wish = earlier(f.wish, now.Add(milliseconds(d.NextCallMS)))
	}
	f.number, f.deadline = 0, 0
	if f.hook == hostabi.HookAllocate {
		a.pace.end(now, f.wish)
	} else {
		a.pace.hold() // until Go: what is done meanwhile belongs to this pass
	}
	return v, true
}

// ask makes a question and waits for its answer from now on.
func (a *Allocator) ask(now snapshot.Instant, hook hostabi.Hook, builtin bool, s Scene) Ask {
	a.newest++
	f := &a.flight
	f.number, f.hook, f.builtin, f.deadline = a.newest, hook, builtin, now.Add(a.cfg.Deadline)
	return Ask{Number: a.newest, Input: a.input(now, s), Builtin: builtin}
}

// only is the part of a decision that answers the question; a policy that answers another one is not heard.
func only(hook hostabi.Hook, d hostabi.Decision) hostabi.Decision {
	if hook == hostabi.HookRelease {
		d.Creates = nil
	} else {
		d.Releases = nil
	}
	return d
}

// milliseconds is a duration that a policy named, bounded so that it can be added to an instant.
func milliseconds(ms int64) time.Duration {
	const day = 24 * 60 * 60 * 1000
	return time.Duration(min(ms, day)) * time.Millisecond
}

// earlier is the earlier of two instants of which 0 is none.
func earlier(a, b snapshot.Instant) snapshot.Instant {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// find is where a profile stands in a list that is ascending by ID.
func find(profiles []Profile, id snapshot.Profile) (int, bool) {
	return slices.BinarySearchFunc(profiles, id, func(p Profile, id snapshot.Profile) int { return cmp.Compare(p.ID, id) })
}
