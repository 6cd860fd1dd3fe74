package allocator

import (
	"math"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// limits is what a decision is held to at this moment.
func (a *Allocator) limits(now snapshot.Instant, s Scene) guard.Limits {
	l := guard.Limits{
		Profiles: make([]guard.ProfileLimits, len(a.cfg.Profiles)), MaxPending: a.cfg.MaxPending,
		LifetimeLeft: a.lifetimeLeft(), Churn: a.churnLeft(now), Grants: a.cfg.Grants,
	}
	for i := range a.cfg.Profiles {
		p, c := &a.cfg.Profiles[i], &s.Profiles[i]
		counts := s.Fleet.Counts(p.ID)
		leaving := counts.Draining + counts.ByPhase[snapshot.Terminating] - counts.Condemned
		ceiling := p.ceiling(a.cfg.Mode, s.Fleet.Target(p.ID))
		if ceiling < math.MaxUint32-leaving { // policies are told that the ceiling is for those that stay; the guard knows this of condemned ones only
			ceiling += leaving
		}
		l.Profiles[i] = guard.ProfileLimits{
			Profile: p.ID, Ceiling: ceiling, Max: p.most(), Floor: p.Min,
			MaxPending: p.MaxPending, AtOnce: atOnce(p.BatchSize, c.AtOnce), Blocked: c.Blocked,
		}
	}
	return l
}

// mostAtOnce bounds the creations of one decision whatever the batch size, so that a slip in a target or a policy does not become a million pods
// before anybody can say stop.
const mostAtOnce = 10_000

// atOnce is the lowest of the bounds on the creations of one decision, of which 0 is none.
func atOnce(bounds ...uint32) uint32 {
	least := uint32(mostAtOnce)
	for _, b := range bounds {
		if b > 0 {
			least = min(least, b)
		}
	}
	return least
}

// lifetimeLeft is how many more executors may ever be created.
func (a *Allocator) lifetimeLeft() uint64 {
	switch {
	case a.cfg.MaxLifetime == 0:
		return math.MaxUint64
	case uint64(a.last) >= a.cfg.MaxLifetime:
		return 0
	}
	return a.cfg.MaxLifetime - uint64(a.last)
}

// churnLeft is how many more creations and releases the last minute allows.
func (a *Allocator) churnLeft(now snapshot.Instant) uint32 {
	if a.cfg.Churn == 0 {
		return math.MaxUint32
	}
	used := a.churn.used(now)
	if used >= uint64(a.cfg.Churn) {
		return 0
	}
	return a.cfg.Churn - uint32(used)
}
