package task

import (
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Counts is how many tasks are in which state, and what happened so far.
type Counts struct {
	Queued, Launched, Running             uint32
	Succeeded, Failed, Cancelled, Expired uint64 // ever
	Accepted                              uint64 // ever
	Retried                               uint64 // attempts after the first, ever
}

// Counts returns the counts over all profiles.
func (b *Book) Counts() Counts { return b.counts }

// Demand is what the tasks of one profile ask for.
type Demand struct {
	Queued uint32           // tasks that wait
	Held   uint32           // tasks that executors hold, started or not
	Oldest snapshot.Instant // since when the one that waits longest has been waiting; meaningful if Queued is not 0
}

// Demand returns what the tasks of a profile ask for.
func (b *Book) Demand(profile snapshot.Profile) Demand {
	q := b.queue(profile)
	d := Demand{Queued: q.again.size + q.fresh.size, Held: q.held}
	if r := q.fresh.first; r != nil {
		d.Oldest = r.since
	}
	if r := q.again.first; r != nil && (q.fresh.first == nil || r.since < d.Oldest) {
		d.Oldest = r.since
	}
	return d
}

// Info returns a task, unless it is unknown or forgotten.
func (b *Book) Info(id ID) (Info, bool) {
	r := b.records.at(id)
	if r == nil {
		return Info{}, false
	}
	return r.Info, true
}

// Query says which tasks are wanted. What is empty does not restrict.
type Query struct {
	Job    string
	Keys   []string
	States []State
	After  ID  // only tasks accepted after this one
	Limit  int // at most so many; 0: all
}

// List returns tasks in order of acceptance.
func (b *Book) List(q Query) []Info {
	var infos []Info
	take := func(r *record) bool {
		if r.ID > q.After && (len(q.States) == 0 || slices.Contains(q.States, r.State)) {
			infos = append(infos, r.Info)
		}
		return q.Limit <= 0 || len(infos) < q.Limit
	}
	switch {
	case len(q.Keys) > 0:
		for _, r := range b.matching(q.Keys, q.Job) {
			if !take(r) {
				break
			}
		}
	case q.Job != "":
		for r := b.jobAfter(q.Job, q.After); r != nil && take(r); r = r.newer {
		}
	default:
		b.records.after(q.After)(take)
	}
	return infos
}

// jobAfter returns where to begin with a job's tasks after the given one, without going through all that came before where it can.
func (b *Book) jobAfter(name string, after ID) *record {
	if r := b.records.at(after); r != nil && r.Spec.Job == name {
		return r.newer
	}
	if j := b.jobs[name]; j != nil {
		return j.oldest
	}
	return nil
}
