package guard

import (
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// create checks one creation and takes into the plan what of it may be done.
func (c *check) create(r hostabi.Create) {
	p, left := c.profile(snapshot.Profile(r.Profile))
	switch {
	case p == nil:
		c.violate(UnknownProfile, "profile %d: there is none", r.Profile)
		return
	case r.Count == 0:
		return
	case p.Blocked != "":
		c.violate(CreateBlocked, "profile %d: none of %d created: %s", p.Profile, r.Count, p.Blocked)
		return
	}
	n := c.clip(p.Profile, int64(r.Count), []bound{
		{OverCeiling, &left.ceiling, "the ceiling"},
		{OverMax, &left.max, "the most that there may be, those on their way out included"},
		{OverPending, &left.pending, "the most that may be pending in the profile"},
		{OverPending, &c.pending, "the most that may be pending in all profiles"},
		{OverAtOnce, &left.atOnce, "the most at once"},
		{OverLifetime, &c.lifetime, "the most that may ever be created"},
		{OverChurn, &c.churn, "the most that may be created or let go in a minute"},
	})
	if n == 0 {
		return
	}
	c.plan.creates = append(c.plan.creates, Create{
		Profile: p.Profile, Count: uint32(n), //nolint:gosec // no more than r.Count
		Zone: r.Zone, Capacity: r.CapacityType, Node: r.Node, Reason: r.Reason,
	})
}

// bound is one thing that bounds creations, and what is left below it.
type bound struct {
	rule Rule
	left *int64
	text string
}

// clip takes from each bound as much of n as is left below all of them, and returns it.
func (c *check) clip(p snapshot.Profile, n int64, bounds []bound) int64 {
	for _, b := range bounds {
		if left := max(*b.left, 0); n > left {
			c.violate(b.rule, "profile %d: %d of %d created: %s", p, left, n, b.text)
			n = left
		}
	}
	for _, b := range bounds {
		take(b.left, n)
	}
	return n
}
