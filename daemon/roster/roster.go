// Package roster knows which executors are registered, on which session, and for how long they have been silent.
//
// It promises:
//
//   - at most one session of an executor is current; an older one never comes back;
//   - who is unknown, has ended, is condemned, or comes from another pod is refused with a sentence that says why;
//   - a session is lost by silence or by a broken stream that is not taken up again, and each loss is told once;
//   - if many sessions fall silent together the fault may be ours: the verdict waits once before it is given;
//   - it holds no more than one entry for each executor that was admitted and neither lost nor removed.
//
// It is pure: time comes in with each call, and Next says when to call Expire.
package roster

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Limits says how long to wait before a session is given up.
type Limits struct {
	Timeout time.Duration // silence longer than this loses a session; it is at least three heartbeats long
	Grace   time.Duration // how long an executor whose stream broke may come back
}

// When at least manyAtLeast sessions are known and more than manyPercent of them fall silent together, the verdict waits.
const (
	manyAtLeast = 10
	manyPercent = 30
)

// Roster is the registered executors of one application. It has one owner.
type Roster struct {
	limits  Limits
	entries map[snapshot.ID]*entry
	due     dues
	held    snapshot.Instant // no verdict before this
	holding bool
}

// entry is a registered executor.
type entry struct {
	Session
	since snapshot.Instant // of the last sign of life, or of the stream's end if it is away
	at    int              // in Roster.due
	due   snapshot.Instant // no verdict before this; it may be too early and is never too late
}

// Session is a registered executor as others may see it.
type Session struct {
	Executor snapshot.ID
	Session  uint64
	UID      string // of its pod, as far as anybody said
	Slots    uint32 // granted
	Began    snapshot.Instant
	Away     bool // its stream broke; it may come back
	Drain    Drain
}

// Drain is how far the draining of an executor has come.
//
//	       Drain(whenIdle)          Drain            Idle
//	None ───────────────► WhenIdle ───────► Told ──────────► Stopping
//	  └──────────────────────── Drain ───────┘
//
// WhenIdle goes to Stopping on Idle as well. Stopping goes back to Told when the executor attaches again: it did not hear.
type Drain uint8

// The states of draining. In all but the first the executor gets no new task.
const (
	DrainNone     Drain = 0
	DrainWhenIdle Drain = 1 // not told; it is stopped as soon as it has nothing to do
	DrainTold     Drain = 2 // told to finish what it has
	DrainStopping Drain = 3 // told to stop
)

// New returns a roster without executors.
func New(limits Limits) *Roster {
	return &Roster{limits: limits, entries: make(map[snapshot.ID]*entry)}
}

// Configure changes the limits. A verdict that is due sooner under the new ones comes when it was due under the old ones at the latest.
func (r *Roster) Configure(limits Limits) {
	r.limits = limits
	for _, id := range slices.Sorted(maps.Keys(r.entries)) {
		r.reckon(r.entries[id])
	}
}

// Beat notes a sign of life on a session. It reports false if the session is not current: it is to be cut off.
func (r *Roster) Beat(now snapshot.Instant, id snapshot.ID, session uint64) bool {
	if !r.Current(id, session) {
		return false
	}
	e := r.entries[id] // its due stays, too early by now: Expire puts it right, so that a beat costs nothing
	e.since = max(e.since, now)
	return true
}

// Current reports whether a session is the executor's only one and its stream stands.
func (r *Roster) Current(id snapshot.ID, session uint64) bool {
	e := r.entries[id]
	return e != nil && e.Session.Session == session && !e.Away
}

// Registered reports whether an executor has a session or may still take one up again, and shows it.
func (r *Roster) Registered(id snapshot.ID) (Session, bool) {
	if e := r.entries[id]; e != nil {
		return e.Session, true
	}
	return Session{}, false
}

// Usable reports whether an executor may be given tasks: its stream stands and it is not to be drained.
func (r *Roster) Usable(id snapshot.ID) bool {
	e := r.entries[id]
	return e != nil && !e.Away && e.Drain == DrainNone
}

// Remove takes an executor out: its pod ended, it said that it leaves, or nobody wants it any more. It shows the session that it had.
func (r *Roster) Remove(id snapshot.ID) (Session, bool) {
	e := r.entries[id]
	if e == nil {
		return Session{}, false
	}
	delete(r.entries, id)
	r.due.remove(e)
	return e.Session, true
}

// Len is how many executors are registered.
func (r *Roster) Len() int { return len(r.entries) }

// All lists the registered executors, ascending by executor.
func (r *Roster) All() iter.Seq[Session] {
	return func(yield func(Session) bool) {
		for _, id := range slices.Sorted(maps.Keys(r.entries)) {
			if !yield(r.entries[id].Session) {
				return
			}
		}
	}
}

// deadline is the last moment at which a session is not lost.
func (r *Roster) deadline(e *entry) snapshot.Instant {
	if e.Away {
		return e.since.Add(r.limits.Grace)
	}
	return e.since.Add(r.limits.Timeout)
}

// reckon puts an entry in its place in the order of deadlines.
func (r *Roster) reckon(e *entry) {
	e.due = r.deadline(e)
	r.due.put(e)
}

func compare(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Executor, b.Executor))
}
