// Package application is the state machine of one application: it takes one event at a time and says what is to be done about it.
//
// It promises:
//
//   - Step reads no clock, starts no goroutine, takes no lock, and gives the same effects for the same events;
//   - every list that leaves it is in a fixed order;
//   - a decision is checked against the state of the moment at which it arrives, not against what the policy was shown;
//   - a policy that never answers stops nothing but its own advice;
//   - nothing is created, and no executor is turned away for good, before the cluster has been listed once.
//
// Around it stands a shell that turns the world into events and effects into calls.
package application

import (
	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// Application is the state of one application. It has one owner.
type Application struct {
	cfg    Config
	now    snapshot.Instant // of the event that is being handled
	begun  bool
	listed bool // the cluster was listed at least once

	store   *snapshot.Store
	roster  *roster.Roster
	book    *task.Book
	alloc   *allocator.Allocator
	cleaner *lifecycle.Cleaner
	kinds   []*kind // as cfg.Profiles

	worked     map[snapshot.ID]struct{}         // executors that registered at least once
	removals   map[snapshot.ID]removal          // executors whose pods are to be deleted
	unseen     deadlines                        // requests, by when they are given up
	stragglers deadlines                        // executors that should have ended, or come back, by then
	patience   map[snapshot.ID]snapshot.Instant // the deadline of each straggler that still holds
	foreign    foreigners

	stopped, keep, ended bool
	backlog              bool // the backlog may have changed since dynamic allocation looked at it
	queued               bool // tasks came, or came back, since work was given out

	watches    []watch // ascending by id
	changed    []task.Info
	policy     policyRecord
	notices    notices
	conditions []Condition
	timers     [timersEnd]snapshot.Instant
	out        []Effect
}

// New returns an application to which nothing has happened yet.
func New(cfg Config) *Application {
	a := &Application{
		cfg:      cfg,
		store:    snapshot.NewStore(),
		roster:   roster.New(cfg.sessions()),
		book:     task.New(cfg.tasks()),
		alloc:    allocator.New(cfg.allocation()),
		cleaner:  lifecycle.NewCleaner(deletionRetry),
		worked:   make(map[snapshot.ID]struct{}),
		removals: make(map[snapshot.ID]removal),
		patience: make(map[snapshot.ID]snapshot.Instant),
	}
	for i := range cfg.Profiles {
		a.kinds = append(a.kinds, newKind(&cfg))
		a.introduce(&cfg.Profiles[i])
	}
	return a
}

// introduce sets a profile's first target.
func (a *Application) introduce(p *Profile) {
	target := p.Target
	if p.Dynamic.Enabled {
		target = max(target, p.Min)
	}
	a.store.SetTarget(snapshot.Target{Profile: p.ID, Count: target})
}

// Snapshot returns the executors as they are now. It never changes.
func (a *Application) Snapshot() *snapshot.Snapshot { return a.store.Snapshot() }

// Step takes one event and returns what is to be done about it, in the order in which it is to be done. It reads no clock, starts no goroutine,
// takes no lock, and gives the same effects for the same events. A moment before that of the event before is taken for the same.
func (a *Application) Step(now snapshot.Instant, ev Event) []Effect {
	a.now = max(a.now, now)
	if !a.begun {
		a.begun = true
		a.alloc.Begin(a.now)
		a.alloc.Note(a.now, hostabi.TriggerStart, true)
	}
	a.expire()
	a.handle(ev)
	a.settle()
	out := a.out
	a.out = nil
	return out
}

func (a *Application) handle(ev Event) {
	switch ev := ev.(type) {
	case PodObserved:
		a.podObserved(&ev.Pod)
	case ForeignObserved:
		a.foreignObserved(ev)
	case PodsListed:
		a.podsListed(ev)
	case PodCreated:
		a.podCreated(ev)
	case PodRefused:
		a.podRefused(ev)
	case PodDeleted:
		a.podDeleted(ev)
	case Attached:
		a.attached(ev)
	case Detached:
		a.detached(ev)
	case Beat:
		a.beat(ev)
	case Reported:
		a.reported(ev)
	case Leaving:
		a.leaving(ev)
	case Decided:
		a.decided(ev)
	case PolicyBound:
		a.policyBound(ev)
	case TimerFired:
		a.timerFired(ev.Timer)
	default:
		a.handleClient(ev)
	}
}

func (a *Application) handleClient(ev Event) {
	switch ev := ev.(type) {
	case Configure:
		a.configure(ev)
	case SetTargets:
		a.setTargets(ev)
	case Submit:
		a.submit(ev)
	case Cancel:
		a.cancelTasks(ev)
	case ListTasks:
		a.listTasks(ev)
	case WatchTasks:
		a.watchTasks(ev)
	case UnwatchTasks:
		a.unwatchTasks(ev.Watch)
	case ReleaseExecutors:
		a.releaseExecutors(ev)
	case Stop:
		a.stop(ev)
	}
}

// settle does what follows from any event: work is given out, watchers are told, pods are cleaned up, the policy is asked.
func (a *Application) settle() {
	a.assign()
	a.ramp()
	a.tellWatchers()
	a.clean()
	if !a.stopped && a.listed && a.alloc.Due() {
		a.pass()
	}
	a.end()
	a.setTimers()
}

func (a *Application) emit(e Effect) { a.out = append(a.out, e) }

// note takes down a change that the policy should hear of.
func (a *Application) note(why hostabi.Trigger, urgent bool) { a.alloc.Note(a.now, why, urgent) }

// end says once that nothing is left of a stopped application.
func (a *Application) end() {
	if !a.stopped || a.keep || a.ended || !a.listed || a.store.Len() > 0 {
		return
	}
	a.ended = true
	a.emit(Ended{})
}
