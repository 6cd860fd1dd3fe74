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
// those that were tried before go first, in the order in which they came back; then the others in order of acceptance.
func (b *Book) Assign(_ snapshot.Instant, slots []Slot) []Assignment {
	var assigned []Assignment
	for _, slot := range slots {
		q := b.queue(slot.Profile)
		n := min(slot.Free, q.again.size+q.fresh.size)
		if n == 0 {
			continue
		}
		launches := make([]Launch, 0, n)
		to := b.holder(slot.Executor)
		for range n {
			r := q.again.first
			if r == nil {
				r = q.fresh.first
			}
			b.give(r, slot.Executor, q, to)
			launches = append(launches, Launch{Ref: r.ref(), Spec: r.Spec})
		}
		assigned = append(assigned, Assignment{Executor: slot.Executor, Launches: launches})
	}
	return assigned
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
