package policytest

import "github.com/retinue-sched/retinue/hostabi"

// Count sets the numbers of executors in the profiles of v to what its executors come to, as the daemon does.
func Count(v *hostabi.View) {
	for i := range v.Profiles {
		p := &v.Profiles[i]
		p.Requested, p.Pending, p.Running, p.Terminating = 0, 0, 0, 0
		p.Draining, p.Condemned, p.Unseen = 0, 0, 0
		p.Registered, p.Busy, p.Idle = 0, 0, 0
		for j := range v.Executors {
			if e := &v.Executors[j]; e.Profile == p.ID && !e.Phase.Terminal() {
				countPhase(p, e)
				countTasks(p, e)
			}
		}
	}
}

// countPhase counts an executor by where it is in its life.
func countPhase(p *hostabi.ProfileRow, e *hostabi.ExecutorRow) {
	switch e.Phase {
	case hostabi.PhaseRequested:
		p.Requested++
	case hostabi.PhasePending:
		p.Pending++
	case hostabi.PhaseTerminating:
		p.Terminating++
		if e.Flags.Has(hostabi.FlagCondemned) {
			p.Condemned++
		}
		return
	default: // running, or in a state that cannot be told: then it may run
		p.Running++
	}
	switch {
	case e.Flags.Has(hostabi.FlagDecommissioning):
		p.Draining++
	case e.Phase == hostabi.PhaseRequested && !e.Flags.Has(hostabi.FlagRegistered):
		p.Unseen++
	}
}

// countTasks counts an executor by what it does.
func countTasks(p *hostabi.ProfileRow, e *hostabi.ExecutorRow) {
	switch {
	case !e.Flags.Has(hostabi.FlagRegistered):
	case e.BusySlots > 0:
		p.Registered, p.Busy = p.Registered+1, p.Busy+1
	default:
		p.Registered, p.Idle = p.Registered+1, p.Idle+1
	}
}
