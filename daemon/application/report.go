package application

import (
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Status returns the application as others may see it. Like Step it must be called by the owner; the value never changes.
func (a *Application) Status(now snapshot.Instant) Status {
	now = max(a.now, now)
	a.judge(now)
	s := Status{
		At: now, ID: a.cfg.ID, Namespace: a.cfg.Namespace, Mode: a.alloc.Mode(), Stopped: a.stopped,
		Tasks: a.book.Counts(), Conditions: slices.Clone(a.conditions), Notices: slices.Clone(a.notices.kept), Executors: a.store.Snapshot(),
		Policy: PolicyStatus{
			Policy: a.policy.policy, By: a.policy.by, Decisions: slices.Clone(a.policy.decisions), Swaps: a.policy.swaps,
			Faults: a.policy.faults, LastFault: a.policy.lastFault, Violations: slices.Clone(a.policy.violations),
		},
	}
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		demand := a.book.Demand(p.ID)
		s.Profiles = append(s.Profiles, ProfileStatus{
			Profile: p.ID, Name: p.Name, Target: a.store.Target(p.ID), Min: p.Min, Max: p.Max, Counts: a.store.Counts(p.ID),
			Peak: a.kinds[i].peak, Created: a.kinds[i].created, Queued: demand.Queued, Running: demand.Held,
		})
	}
	return s
}
