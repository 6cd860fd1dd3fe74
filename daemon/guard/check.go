package guard

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// Reader is what the guard asks of a snapshot.Store, so that it judges by the present, or of a Snapshot.
type Reader interface {
	Executor(id snapshot.ID) (snapshot.Executor, bool)
	Counts(p snapshot.Profile) snapshot.Counts
	Total() snapshot.Counts
}

// Check says what of a decision may be done to the fleet as it is now. The violations are in the order of the decision, releases first.
func Check(lim Limits, fleet Reader, d hostabi.Decision) (Plan, []Violation) {
	c := newCheck(lim, fleet)
	for _, r := range d.Releases {
		c.release(r)
	}
	for _, r := range d.Creates {
		c.create(r)
	}
	slices.SortFunc(c.plan.releases, func(a, b Release) int { return cmp.Compare(a.Executor, b.Executor) })
	slices.SortStableFunc(c.plan.creates, func(a, b Create) int { return cmp.Compare(a.Profile, b.Profile) })
	return c.plan, c.violations
}

// check is one call of Check: how much room is left below each bound.
type check struct {
	limits     Limits
	fleet      Reader
	rooms      []room // as limits.Profiles
	pending    int64
	lifetime   int64
	churn      int64
	released   map[snapshot.ID]bool
	plan       Plan
	violations []Violation
}

// room is what is left below the bounds of one profile. It is negative where a bound was lowered below what there is.
type room struct {
	ceiling, max, pending, atOnce int64
	staying                       uint32
}

const unbounded = math.MaxInt64

func newCheck(lim Limits, fleet Reader) *check {
	c := &check{
		limits:   lim,
		fleet:    fleet,
		rooms:    make([]room, len(lim.Profiles)),
		pending:  above(fleet.Total().Starting(), lim.MaxPending, 0),
		lifetime: int64(min(lim.LifetimeLeft, unbounded)), //nolint:gosec // just bounded
		churn:    above(0, lim.Churn, math.MaxUint32),
		released: make(map[snapshot.ID]bool),
	}
	for i, p := range lim.Profiles {
		n := fleet.Counts(p.Profile)
		c.rooms[i] = room{
			ceiling: above(n.Live()-n.Condemned, p.Ceiling, math.MaxUint32),
			max:     above(n.Live(), p.Max, math.MaxUint32),
			pending: above(n.Starting(), p.MaxPending, 0),
			atOnce:  above(0, p.AtOnce, 0),
			staying: n.Staying(),
		}
	}
	return c
}

// above is how much is left between what is used and a bound, of which one value means that there is none.
func above(used, bound, none uint32) int64 {
	if bound == none {
		return unbounded
	}
	return int64(bound) - int64(used)
}

// profile finds the bounds of a profile; nil if a policy made it up.
func (c *check) profile(p snapshot.Profile) (*ProfileLimits, *room) {
	i, ok := slices.BinarySearchFunc(c.limits.Profiles, p, func(l ProfileLimits, p snapshot.Profile) int { return cmp.Compare(l.Profile, p) })
	if !ok {
		return nil, nil
	}
	return &c.limits.Profiles[i], &c.rooms[i]
}

func (c *check) violate(rule Rule, format string, args ...any) {
	c.violations = append(c.violations, Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

// take takes n from what is left, if anything bounds it.
func take(left *int64, n int64) {
	if *left != unbounded {
		*left -= n
	}
}
