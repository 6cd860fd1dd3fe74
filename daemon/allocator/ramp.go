package allocator

import (
	"math"
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// Dynamic is dynamic allocation: the target follows the backlog, as Spark's does.
type Dynamic struct {
	Enabled   bool
	Backlog   time.Duration // tasks have been waiting this long before the first executors are added
	Sustained time.Duration // and this long again before more are, twice as many each time
	Ratio     float64       // of tasks to slots; 1: a slot for each task
}

// ramp is how far a profile's dynamic allocation has come.
type ramp struct {
	began bool             // tasks have come: until then the initial executors are not taken away
	at    snapshot.Instant // when executors are added if tasks still wait; 0: no task waits
	add   uint32           // how many; 0 stands for 1
}

// Ramp looks at a profile's backlog and returns the target that dynamic allocation wants, and whether it is another than now.
func (a *Allocator) Ramp(now snapshot.Instant, profile snapshot.Profile, d task.Demand, fleet Fleet) (uint32, bool) {
	i, ok := find(a.cfg.Profiles, profile)
	if !ok || !a.cfg.Profiles[i].Dynamic.Enabled {
		return 0, false
	}
	target := fleet.Target(profile)
	next := a.ramps[i].step(now, &a.cfg.Profiles[i], d, target, fleet.Counts(profile).Registered)
	return next, next != target
}

// NextRamp is when Ramp is to be called although nothing has changed, 0 if never.
func (a *Allocator) NextRamp() snapshot.Instant {
	next := snapshot.Instant(0)
	for i := range a.ramps {
		next = earlier(next, a.ramps[i].at)
	}
	return next
}

// step returns the next target. Executors are added while tasks wait: at first one, then twice as many each time. What is not needed is taken
// back at once.
func (r *ramp) step(now snapshot.Instant, p *Profile, d task.Demand, target, registered uint32) uint32 {
	r.began = r.began || d.Queued+d.Held > 0
	switch {
	case d.Queued == 0:
		r.at, r.add = 0, 0
	case r.at == 0:
		r.at = now.Add(p.Dynamic.Backlog)
	}
	need := p.need(d)
	switch {
	case !r.began:
		return target
	case need < target:
		r.add = 0
		return min(target, max(need, p.Min))
	case r.at == 0 || now < r.at:
		return target
	}
	r.at = now.Add(p.Dynamic.Sustained)
	return r.grow(p, need, target, registered)
}

// grow returns the target with executors added.
func (r *ramp) grow(p *Profile, need, target, registered uint32) uint32 {
	add := max(r.add, 1)
	next := max(target, registered)
	next += min(add, math.MaxUint32-next)
	next = max(min(next, need, p.most()), p.Min)
	switch {
	case next <= target:
		r.add = 0
		return target
	case next-target == add:
		r.add = add + min(add, math.MaxUint32-add)
	default:
		r.add = 0
	}
	return next
}

// need is how many executors it takes to run all tasks at the wanted ratio.
func (p *Profile) need(d task.Demand) uint32 {
	tasks := float64(d.Queued) + float64(d.Held)
	slots := float64(max(p.Slots, 1))
	return uint32(min(math.Ceil(tasks*p.Dynamic.Ratio/slots), math.MaxUint32-1))
}
