package task

import "github.com/retinue-sched/retinue/daemon/snapshot"

// Slot is room for tasks on an executor.
type Slot struct {
	Executor snapshot.ID
	Profile  snapshot.Profile
	Free     uint32
}

// Assignment is what an executor is given.
type Assignment struct {
	Executor snapshot.ID
	Launches []Launch
}

// Assign gives waiting tasks to executors: each executor in turn as much as it has room for, before the next gets any. Of a profile's tasks,
// those that were tried before go first, in the order in which they came back; then the others in order of acceptance. One whose deadline is over
// is passed over: Expire ends it.
func (b *Book) Assign(now snapshot.Instant, slots []Slot) []Assignment {
	var assigned []Assignment
	for _, slot := range slots {
		q := b.queue(slot.Profile)
		n := min(slot.Free, q.again.size+q.fresh.size)
		if n == 0 {
			continue
		}
		launches := make([]Launch, 0, n)
		for r := q.next(now); r != nil && uint32(len(launches)) < n; r = q.next(now) {
			b.give(r, slot.Executor, q)
			launches = append(launches, Launch{Ref: r.ref(), Spec: r.Spec})
		}
		if len(launches) > 0 {
			assigned = append(assigned, Assignment{Executor: slot.Executor, Launches: launches})
		}
	}
	return assigned
}

// next returns the task that is to be given out next.
func (q *queue) next(now snapshot.Instant) *record {
	for _, first := range [...]*record{q.again.first, q.fresh.first} {
		for r := first; r != nil; r = r.next {
			if !r.overdue(now) {
				return r
			}
		}
	}
	return nil
}

// holder returns the lane of what an executor holds.
func (b *Book) holder(executor snapshot.ID) *lane {
	l := b.held[executor]
	if l == nil {
		l = &lane{}
		b.held[executor] = l
	}
	return l
}
