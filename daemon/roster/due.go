package roster

import "container/heap"

// dues orders entries by when a verdict on them may be due.
type dues struct{ entries queue }

// put brings an entry in, or moves it to its place.
func (d *dues) put(e *entry) {
	if e.at < len(d.entries) && d.entries[e.at] == e {
		heap.Fix(&d.entries, e.at)
		return
	}
	heap.Push(&d.entries, e)
}

func (d *dues) remove(e *entry) {
	if e.at < len(d.entries) && d.entries[e.at] == e {
		heap.Remove(&d.entries, e.at)
	}
}

// first is the entry with the earliest due, nil if there is none.
func (d *dues) first() *entry {
	if len(d.entries) == 0 {
		return nil
	}
	return d.entries[0]
}

// queue is what package heap needs.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return compare(q[i], q[j]) < 0 }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	e, _ := x.(*entry)
	e.at = len(*q)
	*q = append(*q, e)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
