package task

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Kill is an attempt to be ended by the executor that holds it.
type Kill struct {
	Executor snapshot.ID
	Ref      Ref
	Fate     State // Cancelled or Expired: what the task becomes unless it succeeds
}

// Cancel ends tasks: those with the keys, or else all of the job, or else all. With both, those of the job that have one of the keys.
//
// A task that waits is Cancelled at once and is among changed; one that an executor holds is when that executor says so or is lost, and is
// among kills, each time that it is asked for. One that succeeds before it is killed has succeeded, and one whose deadline was over before is
// Expired. Both lists are in order of acceptance.
func (b *Book) Cancel(now snapshot.Instant, keys []string, job string) (changed []Info, kills []Kill) {
	for _, r := range b.matching(keys, job) {
		switch {
		case r.State == Queued:
			b.finish(now, r, cmp.Or(r.fateAt(now), Cancelled), r.Result)
			changed = append(changed, r.Info)
		case r.State.held():
			b.condemn(r, cmp.Or(r.fateAt(now), Cancelled))
			kills = append(kills, r.kill())
		}
	}
	return changed, kills
}

// matching lists the tasks with the keys, or else of the job, or else all, in order of acceptance.
func (b *Book) matching(keys []string, jobName string) []*record {
	var found []*record
	switch {
	case len(keys) > 0:
		for _, key := range keys {
			if r := b.keys[key]; r != nil && (jobName == "" || r.Spec.Job == jobName) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, func(a, b *record) int { return cmp.Compare(a.ID, b.ID) })
		return slices.Compact(found)
	case jobName != "":
		if j := b.jobs[jobName]; j != nil {
			for r := j.oldest; r != nil; r = r.newer {
				found = append(found, r)
			}
		}
		return found
	}
	return slices.Collect(b.records.after(0))
}
