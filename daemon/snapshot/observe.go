package snapshot

import (
	"cmp"
	"slices"
)

// Observe takes in a watch event. It reports false if that changed nothing but the executor's version.
//
//   - An event that is older than what is known of the pod, or repeats it, is dropped; a terminal executor notes that its pod is gone, and else
//     stays as it is. An event without a version is taken for the newest.
//   - A pod of another uid than the executor's is another life, and not the executor's: it is dropped, see Surplus. As long as no uid is known
//     the name must be the executor's.
//   - A Terminating executor stays Terminating until it ends: an event that still shows it Running was sent before the deletion arrived.
//   - A pod that is deleted while it was Running is Deleted: the cluster never said how it ended.
//   - An unknown id is adopted if its pod has not ended and the event is newer than all that is settled: the newest list, and the ends of
//     those that were forgotten.
func (s *Store) Observe(now Instant, o Observation) (Change, bool) {
	s.newest = max(s.newest, o.Version)
	return s.observe(now, &o, o.Version == 0 || o.Version > s.settled)
}

// Replace takes in a full list at version v. It returns the changes in ascending order of ID. A list older than the newest one is refused: it
// changes nothing.
//
// An executor that the list lacks is gone only if the list is at least as new as its creation and its newest observation; a live one is Deleted
// then. A list without a version shows what there is, and never that something is gone.
func (s *Store) Replace(now Instant, v Version, list []Observation) []Change {
	if v != 0 && v < s.listed {
		return nil
	}
	s.newest = max(s.newest, v)
	settles := v != 0 && v >= s.settled // the list itself tells apart who has ended and who was never known
	present := make(map[ID]bool, len(list))
	var changes []Change
	for i := range list {
		o := &list[i]
		s.newest = max(s.newest, o.Version)
		if c, ok := s.observe(now, o, settles || o.Version == 0 || o.Version > s.settled); ok {
			changes = append(changes, c)
		}
		if e := s.tree.find(o.ID); e != nil && e.is(o) {
			present[o.ID] = true
		}
	}
	changes = append(changes, s.miss(now, v, present)...)
	s.listed = max(s.listed, v)
	s.settled = max(s.settled, v)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.After.ID, b.After.ID) })
	return changes
}

// Surplus reports whether a pod that the cluster shows should not be there: it ended before anybody here knew it, or belongs to an executor that
// was given up, or is another life under the id of a known executor. Its object is to be deleted, by its uid, unless it is going already.
func (s *Store) Surplus(o *Observation) bool {
	if o.Phase == Deleted || o.Phase == Terminating || o.Deleting {
		return false
	}
	e := s.tree.find(o.ID)
	switch {
	case e == nil:
		return o.Phase.Terminal()
	case e.is(o):
		return e.Phase == Lost
	}
	return true
}

// miss marks as gone what a list at version v should have shown.
func (s *Store) miss(now Instant, v Version, present map[ID]bool) []Change {
	if v == 0 {
		return nil
	}
	var absent []Executor
	s.tree.root.each(func(e *Executor) bool {
		if !present[e.ID] && !e.Gone && e.Born != 0 && v >= e.Born && v >= e.Version {
			absent = append(absent, *e)
		}
		return true
	})
	changes := make([]Change, 0, len(absent))
	for _, e := range absent {
		next := e
		next.Gone = true
		if e.Live() {
			next.enter(now, Deleted)
		}
		changes = append(changes, s.replace(e, next))
	}
	return changes
}

// observe takes in one pod. News says whether it may be adopted if nobody knows it.
func (s *Store) observe(now Instant, o *Observation, news bool) (Change, bool) {
	e := s.tree.find(o.ID)
	if e == nil {
		if o.ID == 0 || o.Phase.Terminal() || !news {
			return Change{}, false
		}
		fresh := Executor{ID: o.ID, Profile: o.Profile, Phase: Requested, Since: now, Asked: now}
		fresh.take(now, o)
		s.put(fresh)
		return Change{After: fresh, Adopted: true}, true
	}
	if !e.is(o) || e.outdates(o) {
		return Change{}, false
	}
	before, next := *e, *e
	next.take(now, o)
	if next == before {
		return Change{}, false
	}
	change := s.replace(before, next)
	before.Version = next.Version
	return change, next != before
}

// is reports whether a pod is the executor's.
func (e *Executor) is(o *Observation) bool {
	if e.UID != "" && o.UID != "" {
		return e.UID == o.UID
	}
	return e.Name == "" || o.Name == "" || e.Name == o.Name
}

// outdates reports whether a pod was known at least as well before.
func (e *Executor) outdates(o *Observation) bool {
	switch {
	case e.Gone:
		return true
	case o.Version == 0:
		return false
	case o.Version == e.Version:
		return o.Phase != Deleted
	}
	return o.Version < e.Version
}

// take writes what a pod shows into the executor whose pod it is.
func (e *Executor) take(now Instant, o *Observation) {
	e.Version = max(e.Version, o.Version)
	e.Born = cmp.Or(e.Born, o.Version)
	e.UID = cmp.Or(o.UID, e.UID)
	e.Name = cmp.Or(o.Name, e.Name)
	e.Node = cmp.Or(o.Node, e.Node)
	e.Zone = cmp.Or(o.Zone, e.Zone)
	e.Capacity = cmp.Or(o.Capacity, e.Capacity)
	e.Restarts = max(e.Restarts, o.Restarts)
	e.Deleting = e.Deleting || o.Deleting || o.Phase == Terminating
	e.Gone = o.Phase == Deleted
	if o.Exit != (Exit{}) && (e.Live() || e.Exit == (Exit{})) { // the end of an object says less than the end of its container
		e.Exit = o.Exit
	}
	e.Seen = e.seen(o.Phase)
	if e.Seen == o.Phase && !e.Seen.Terminal() { // why it waited may be why it ended
		e.Wait, e.WaitText = o.Wait, o.WaitText
	}
	if e.Live() && (e.Phase != Terminating || e.Seen.Terminal()) {
		e.enter(now, e.Seen)
	}
}

// seen is what the cluster's word comes to: where it cannot tell, what it said before.
func (e *Executor) seen(p Phase) Phase {
	switch p {
	case Pending, Running, Terminating, Succeeded, Failed, Deleted:
		return p
	case Unknown, Requested, Lost:
	}
	return max(e.Seen, Pending)
}
