package guard

import (
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// release checks one release and takes it into the plan if it may be done.
func (c *check) release(r hostabi.Release) {
	mode, ok := modeOf(r.Mode)
	if !ok {
		c.violate(UnknownMode, "executor %d: there is no way %d of letting go", r.Executor, r.Mode)
		return
	}
	e, ok := c.fleet.Executor(snapshot.ID(r.Executor))
	if !ok {
		c.violate(UnknownExecutor, "executor %d: there is none", r.Executor)
		return
	}
	p, left := c.profile(e.Profile)
	if p == nil {
		c.violate(UnknownProfile, "executor %d: profile %d is not the policy's to decide on", e.ID, e.Profile)
		return
	}
	if c.released[e.ID] {
		c.violate(ReleaseTwice, "executor %d: this decision lets it go already", e.ID)
		return
	}
	if !c.permits(&e, mode) || !c.spares(&e, p, left) {
		return
	}
	c.let(&e, c.soften(&e, mode), r.Reason, left)
}

func modeOf(m hostabi.ReleaseMode) (Mode, bool) {
	switch m {
	case hostabi.Cancel:
		return Cancel, true
	case hostabi.Drain:
		return Drain, true
	case hostabi.Kill:
		return Kill, true
	}
	return 0, false
}

// permits reports whether an executor may be let go in a way, as far as it alone is concerned.
func (c *check) permits(e *snapshot.Executor, mode Mode) bool {
	switch {
	case !e.Live() || e.Phase == snapshot.Terminating:
		c.violate(ReleaseMoot, "executor %d: it is %v", e.ID, e.Phase)
	case mode == Drain && e.Load.Draining:
		c.violate(ReleaseMoot, "executor %d: it is draining", e.ID)
	case mode == Cancel && !unstarted(e):
		c.violate(CancelStarted, "executor %d: it is %v, registered: %t; only what has not started is cancelled", e.ID, e.Phase, e.Load.Registered)
	case mode == Kill && !c.limits.Grants.Kill:
		c.violate(KillNotGranted, "executor %d: the binding does not grant killing", e.ID)
	default:
		return true
	}
	return false
}

// spares reports whether enough stay, and few enough went lately, for an executor to be let go.
func (c *check) spares(e *snapshot.Executor, p *ProfileLimits, left *room) bool {
	switch {
	case !e.Load.Draining && left.staying <= p.Floor:
		c.violate(BelowFloor, "executor %d: profile %d has %d that stay, and at least %d must", e.ID, p.Profile, left.staying, p.Floor)
	case c.churn <= 0:
		c.violate(OverChurn, "executor %d: no more may be created or let go this minute", e.ID)
	default:
		return true
	}
	return false
}

// soften says how an executor is let go that may be let go.
func (c *check) soften(e *snapshot.Executor, mode Mode) Mode {
	switch {
	case mode == Drain && unstarted(e): // there is nothing that could be finished
		return Cancel
	case mode == Drain && e.Load.Busy > 0 && !c.limits.Grants.DrainBusy:
		c.violate(DrainBusy, "executor %d: it is busy, so it is drained when it is idle", e.ID)
		return DrainWhenIdle
	}
	return mode
}

func (c *check) let(e *snapshot.Executor, mode Mode, reason string, left *room) {
	c.released[e.ID] = true
	take(&c.churn, 1)
	if !e.Load.Draining {
		left.staying--
	}
	if mode == Cancel || mode == Kill { // condemned from now on: see the package comment
		take(&left.ceiling, -1)
		if e.Starting() {
			take(&left.pending, -1)
			take(&c.pending, -1)
		}
	}
	c.plan.releases = append(c.plan.releases, Release{Executor: e.ID, Mode: mode, Reason: reason})
}

// unstarted reports whether an executor has nothing that a cancellation could cut short.
func unstarted(e *snapshot.Executor) bool { return e.Starting() && !e.Load.Registered }
