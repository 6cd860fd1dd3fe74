package application

import (
	"cmp"
	"container/heap"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// deadlines are executors by the moment at which something should have happened to them. Nobody takes one out when it happens: who asks says
// which of them still matter, and the first of those that do not go then.
type deadlines struct{ queue deadlineQueue }

type deadline struct {
	at snapshot.Instant
	id snapshot.ID
}

func (d *deadlines) add(at snapshot.Instant, id snapshot.ID) { heap.Push(&d.queue, deadline{at, id}) }

// next is the first moment that matters, 0 if there is none.
func (d *deadlines) next(matters func(deadline) bool) snapshot.Instant {
	for len(d.queue) > 0 {
		if matters(d.queue[0]) {
			return d.queue[0].at
		}
		heap.Pop(&d.queue)
	}
	return 0
}

// due takes out those whose moment has come and that matter, in the order of their moments.
func (d *deadlines) due(now snapshot.Instant, matters func(deadline) bool) []snapshot.ID {
	var ids []snapshot.ID
	for len(d.queue) > 0 && d.queue[0].at <= now {
		if first := d.queue[0]; matters(first) {
			ids = append(ids, first.id)
		}
		heap.Pop(&d.queue)
	}
	return ids
}

// deadlineQueue is what package heap needs.
type deadlineQueue []deadline

func (q deadlineQueue) Len() int { return len(q) }

func (q deadlineQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].id, q[j].id)) < 0
}

func (q deadlineQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *deadlineQueue) Push(x any) {
	d, _ := x.(deadline)
	*q = append(*q, d)
}

func (q *deadlineQueue) Pop() any {
	last := len(*q) - 1
	d := (*q)[last]
	*q = (*q)[:last]
	return d
}
