package roster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Lost is a session that was given up.
type Lost struct {
	Session
	Text string // why, one sentence for people
}

// Detach notes that the stream of a session broke: the executor may come back within the grace. It reports false if the session is not current.
func (r *Roster) Detach(now snapshot.Instant, id snapshot.ID, session uint64) bool {
	if !r.Current(id, session) {
		return false
	}
	e := r.entries[id]
	e.Away, e.since = true, now
	r.reckon(e)
	return true
}

// Expire gives up the sessions that have been silent or away for too long and lists them, ascending by executor. They are out of the roster.
//
// If more than 30 % of at least ten sessions have been silent for half of the timeout, or are away, when the first is to be given up, none is
// given up before another timeout has passed: that so many went at once is more likely our own fault. The second verdict is not put off.
func (r *Roster) Expire(now snapshot.Instant) []Lost {
	if r.holding && now <= r.held {
		return nil
	}
	expired := r.expired(now)
	if len(expired) == 0 {
		r.holding = false
		return nil
	}
	if !r.holding && r.many(now) {
		r.holding, r.held = true, now.Add(r.limits.Timeout)
		return nil
	}
	r.holding = false
	lost := make([]Lost, 0, len(expired))
	for _, e := range expired {
		r.Remove(e.Executor)
		lost = append(lost, Lost{Session: e.Session, Text: e.loss(now)})
	}
	return lost
}

// Next is when Expire may have something to do; false if there is nothing to wait for. It may be too early.
func (r *Roster) Next() (snapshot.Instant, bool) {
	e := r.due.first()
	switch {
	case r.holding: // also if nobody is silent any more: the next time that many go is another matter, and is put off again
		return r.held + 1, true
	case e == nil:
		return 0, false
	}
	return e.due + 1, true // what is due is lost after that moment, not at it
}

// expired lists the entries that are past their deadline, ascending by executor, and puts right the dues of those that are not.
func (r *Roster) expired(now snapshot.Instant) []*entry {
	var expired []*entry
	for e := r.due.first(); e != nil && e.due < now; e = r.due.first() {
		if r.deadline(e) < now {
			r.due.remove(e)
			expired = append(expired, e)
			continue
		}
		r.reckon(e)
	}
	for _, e := range expired {
		r.due.put(e)
	}
	slices.SortFunc(expired, func(a, b *entry) int { return cmp.Compare(a.Executor, b.Executor) })
	return expired
}

// many reports whether so many sessions have gone at once that the fault may be ours.
func (r *Roster) many(now snapshot.Instant) bool {
	if len(r.entries) < manyAtLeast {
		return false
	}
	suspects := 0
	for _, e := range r.entries {
		if e.Away || now.Sub(e.since) > r.limits.Timeout/2 {
			suspects++
		}
	}
	return suspects*100 > len(r.entries)*manyPercent
}

func (e *entry) loss(now snapshot.Instant) string {
	if e.Away {
		return fmt.Sprintf("the connection to executor %d broke %v ago and it did not come back", e.Executor, snapshot.Rounded(now.Sub(e.since)))
	}
	return fmt.Sprintf("nothing was heard of executor %d for %v", e.Executor, snapshot.Rounded(now.Sub(e.since)))
}
