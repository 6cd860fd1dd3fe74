package snapshot

import "slices"

// Store is what there is and what is wanted now. It has one owner; others read the Snapshots that it publishes.
type Store struct {
	fleet
	epoch     uint64
	settled   Version   // an unknown executor that was observed no later than this has ended or was never ours
	published *Snapshot // nil if something has changed since
}

// Change is what an observation changed in one executor.
type Change struct {
	Before, After Executor
	Adopted       bool // the executor was unknown; Before is zero
}

// NewStore returns a store that knows of nothing.
func NewStore() *Store { return &Store{} }

// Snapshot publishes the present state. It costs a copy of the counts per profile; writing to the store afterwards copies what it touches.
func (s *Store) Snapshot() *Snapshot {
	if s.published == nil {
		s.published = &Snapshot{s.fleet}
		s.published.rows = slices.Clone(s.rows)
		s.epoch++
	}
	return s.published
}

// Assume notes that an executor was asked for: it is Requested and counts as live, whatever becomes of the request, until the cluster shows
// otherwise or Lose gives it up. What e says of phase, times and observations does not matter. It reports false, and does nothing, for an id
// that is known or 0.
func (s *Store) Assume(now Instant, e Executor) bool {
	if e.ID == 0 || s.tree.find(e.ID) != nil {
		return false
	}
	s.put(Executor{
		ID: e.ID, Profile: e.Profile, Phase: Requested, Since: now, Asked: now, Name: e.Name,
		Node: e.Node, Zone: e.Zone, Capacity: e.Capacity,
	})
	return true
}

// Created notes that the API answered the creation with a pod: made at version v, or found at it. The executor stays unseen; from now on a
// list at v or later that lacks it shows that it is gone. If a watch event was faster, that life is the executor's and a pod of another uid
// is Surplus.
func (s *Store) Created(id ID, uid string, v Version) {
	e := s.tree.find(id)
	if e == nil || e.Gone {
		return
	}
	next := *e
	switch {
	case e.Seen == Unknown && v >= e.Born:
		next.UID, next.Born = uid, v
	case e.UID == uid && e.Born == 0:
		next.Born = v
	}
	if next != *e {
		s.put(next)
	}
}

// Condemn notes that the executor's end was asked for: it is Terminating from now on, may never register again, and counts as live until the
// cluster shows its end. It reports false if the executor is unknown, has ended, or is condemned already.
//
// A creation that was never answered is condemned like any other. Nothing but an observation, or Created and then a list, shows its end, because
// the request may yet arrive; whoever knows that it cannot may Lose it.
func (s *Store) Condemn(now Instant, id ID) bool {
	e := s.tree.find(id)
	if e == nil || e.Condemned || !e.Live() {
		return false
	}
	next := *e
	next.Condemned = true
	next.enter(now, Terminating)
	s.put(next)
	return true
}

// Spare takes Condemn back, because the deletion was refused: the executor is what the cluster showed last. It reports false if the executor is
// unknown, has ended, is not condemned, or was seen to be going all the same.
func (s *Store) Spare(now Instant, id ID) bool {
	e := s.tree.find(id)
	if e == nil || !e.Condemned || !e.Live() || e.Deleting {
		return false
	}
	next := *e
	next.Condemned = false
	next.enter(now, max(e.Seen, Requested))
	s.put(next)
	return true
}

// Lose gives up an executor that no list or watch event has shown. It reports false for any other: what was seen ends when the cluster says so.
// If the pod appears after all, the executor stays Lost and notes the pod's uid, so that it can be deleted.
func (s *Store) Lose(now Instant, id ID) (Change, bool) {
	e := s.tree.find(id)
	if e == nil || e.Seen != Unknown || !e.Live() {
		return Change{}, false
	}
	next := *e
	next.enter(now, Lost)
	return s.replace(*e, next), true
}

// Forget drops an executor. Observations of its pod that are older than its known end do not bring it back.
func (s *Store) Forget(id ID) {
	e := s.tree.find(id)
	if e == nil {
		return
	}
	if e.Gone {
		s.settled = max(s.settled, e.Version)
	}
	s.published = nil
	s.count(e, leaves)
	s.len--
	s.tree.remove(s.epoch, id)
}

// SetLoad notes what an executor's session and tasks say about it. It reports false if the executor is unknown.
func (s *Store) SetLoad(id ID, l Load) bool {
	e := s.tree.find(id)
	if e == nil {
		return false
	}
	if e.Load != l {
		next := *e
		next.Load = l
		s.put(next)
	}
	return true
}

// SetTarget sets how many executors of a profile are wanted.
func (s *Store) SetTarget(t Target) {
	s.published = nil
	r := s.at(t.Profile)
	r.target, r.wanted = t.Count, true
}

// enter puts the executor into a phase.
func (e *Executor) enter(now Instant, p Phase) {
	if e.Phase != p {
		e.Phase, e.Since = p, now
	}
}

func (s *Store) replace(before, after Executor) Change {
	s.put(after)
	return Change{Before: before, After: after}
}

// put is the only way an executor comes into the store or changes in it.
func (s *Store) put(e Executor) {
	s.published = nil
	if old := s.tree.find(e.ID); old != nil {
		s.count(old, leaves)
	} else {
		s.len++
	}
	*s.tree.edit(s.epoch, e.ID) = e
	s.count(&e, enters)
}

func (s *Store) count(e *Executor, times uint32) {
	s.total.add(e, times)
	r := s.at(e.Profile)
	r.counts.add(e, times)
	if !r.wanted && r.counts == (Counts{}) { // a profile that only strange labels named
		i, _ := s.row(e.Profile)
		s.rows = slices.Delete(s.rows, i, i+1)
	}
}

// at returns a profile's row to be written.
func (s *Store) at(p Profile) *row {
	i, ok := s.row(p)
	if !ok {
		s.rows = slices.Insert(s.rows, i, row{profile: p})
	}
	return &s.rows[i]
}
