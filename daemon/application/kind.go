package application

import (
	"cmp"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// kind is what is kept of one profile beside its executors and tasks.
type kind struct {
	backoff  *lifecycle.Backoff
	failures failures
	refusal  RefusalClass  // why the newest creation was refused, 0 once one was accepted
	free     []snapshot.ID // executors with room for tasks, ascending
	peak     uint32        // most executors registered at once
	created  uint64        // ever
}

func newKind(cfg *Config) *kind {
	return &kind{backoff: lifecycle.NewBackoff(cfg.Failures), failures: failures{window: cfg.Failures.Window}}
}

// kind returns what is kept of a profile; nil if the profile is not one of the application's.
func (a *Application) kind(p snapshot.Profile) *kind {
	i, ok := a.cfg.profile(p)
	if !ok {
		return nil
	}
	return a.kinds[i]
}

// setFree notes whether an executor has room for tasks.
func (k *kind) setFree(id snapshot.ID, free bool) {
	i, there := slices.BinarySearchFunc(k.free, id, cmp.Compare)
	switch {
	case free && !there:
		k.free = slices.Insert(k.free, i, id)
	case !free && there && i == 0: // the usual case: the first one was filled
		k.free = k.free[1:]
	case !free && there:
		k.free = slices.Delete(k.free, i, i+1)
	}
}

// maxFailures bounds the ends of executors that are remembered for policies to see.
const maxFailures = 256

// failures is how executors of a profile ended lately.
type failures struct {
	window time.Duration // 0: no end is too old
	ends   []end         // the newest, oldest first
}

type end struct {
	at    snapshot.Instant
	class lifecycle.Class
}

func (f *failures) add(now snapshot.Instant, class lifecycle.Class) {
	if class == lifecycle.Finished || class == lifecycle.Released || class == lifecycle.Taken {
		return
	}
	if len(f.ends) == maxFailures {
		f.ends = slices.Delete(f.ends, 0, 1)
	}
	f.ends = append(f.ends, end{now, class})
}

// count counts the ends inside the window, as policies see them.
func (f *failures) count(now snapshot.Instant) allocator.Failures {
	var n allocator.Failures
	for _, e := range f.ends {
		if f.window > 0 && now.Sub(e.at) > f.window {
			continue
		}
		if place := placeOf(&n, e.class); place != nil {
			*place++
		}
	}
	return n
}

// placeOf is where a class is counted; nil if policies are not shown it.
func placeOf(n *allocator.Failures, class lifecycle.Class) *uint32 {
	switch class {
	case lifecycle.Application:
		return &n.Application
	case lifecycle.OutOfMemory:
		return &n.OOM
	case lifecycle.Image:
		return &n.Image
	case lifecycle.Disruption:
		return &n.Disruption
	case lifecycle.NodeLost:
		return &n.NodeLost
	case lifecycle.Deleted:
		return &n.Operator
	case lifecycle.Unseen:
		return &n.Unschedulable
	case lifecycle.Quota:
		return &n.Quota
	case lifecycle.Invalid, lifecycle.Admission, lifecycle.Forbidden:
		return &n.Admission
	case lifecycle.Finished, lifecycle.Released, lifecycle.Taken:
	}
	return nil
}
