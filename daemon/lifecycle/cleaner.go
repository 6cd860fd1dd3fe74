package lifecycle

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Retry says how often the deletion of an object is asked for again.
type Retry struct {
	Interval time.Duration // before the second time; it doubles with each time
	Max      time.Duration // the longest
}

// delay is how long to wait after n times.
func (r Retry) delay(n uint) time.Duration { return doubled(r.Interval, n, r.Max) }

// doubled is d doubled n times, at most limit, and at least 1 ns so that time goes on.
func doubled(d time.Duration, n uint, limit time.Duration) time.Duration {
	for ; n > 0 && d < limit; n-- {
		if d > limit/2 {
			d = limit
			break
		}
		d *= 2
	}
	return max(min(d, limit), 1)
}

// Cleaner knows which executors' objects are to be deleted. What is asked for is asked for again, ever less often, until Gone says that it is no
// longer needed: that a deletion was accepted does not mean that the object is gone.
type Cleaner struct {
	retry   Retry
	entries map[snapshot.ID]*deletion
	due     deletions
}

// NewCleaner returns a cleaner with nothing to do.
func NewCleaner(retry Retry) *Cleaner {
	return &Cleaner{retry: retry, entries: make(map[snapshot.ID]*deletion)}
}

// Add says that an executor's object is to be deleted, from now on. Said again it changes nothing.
func (c *Cleaner) Add(now snapshot.Instant, id snapshot.ID) {
	if c.entries[id] != nil {
		return
	}
	d := &deletion{id: id, at: now}
	c.entries[id] = d
	heap.Push(&c.due, d)
}

// Due lists the executors whose deletion is to be asked for now, ascending. The next time each is listed is an interval later at the earliest.
func (c *Cleaner) Due(now snapshot.Instant) []snapshot.ID {
	var ids []snapshot.ID
	for len(c.due) > 0 && c.due[0].at <= now {
		d := c.due[0]
		d.at = now.Add(c.retry.delay(d.times))
		d.times++
		heap.Fix(&c.due, 0)
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	return ids
}

// Next is when Due has something to list; false if nothing is left to do.
func (c *Cleaner) Next() (snapshot.Instant, bool) {
	if len(c.due) == 0 {
		return 0, false
	}
	return c.due[0].at, true
}

// Times is how often an executor's deletion was asked for, 0 if it is not to be deleted.
func (c *Cleaner) Times(id snapshot.ID) uint {
	if d := c.entries[id]; d != nil {
		return d.times
	}
	return 0
}

// Gone says that an executor's object is gone, or not to be deleted after all. It reports whether the executor was known here.
func (c *Cleaner) Gone(id snapshot.ID) bool {
	d := c.entries[id]
	if d == nil {
		return false
	}
	delete(c.entries, id)
	heap.Remove(&c.due, d.index)
	return true
}

// Len is how many executors' objects are to be deleted.
func (c *Cleaner) Len() int { return len(c.entries) }

// deletion is one object to be deleted.
type deletion struct {
	id    snapshot.ID
	at    snapshot.Instant // the next time
	times uint
	index int // in Cleaner.due
}

// deletions are ordered by when they are due. The methods are what package heap needs.
type deletions []*deletion

func (d deletions) Len() int { return len(d) }

func (d deletions) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].at, d[j].at), cmp.Compare(d[i].id, d[j].id)) < 0
}

func (d deletions) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deletions) Push(x any) {
	e, _ := x.(*deletion)
	e.index = len(*d)
	*d = append(*d, e)
}

func (d *deletions) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return e
}
