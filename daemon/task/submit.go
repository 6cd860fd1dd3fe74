package task

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Submit accepts all of the tasks, or none. It returns them in the order of specs; one whose key names a task that is the same in every field
// is that task, in whatever state it is. A task that has ended long ago is forgotten (see Limits), and its key names a new one.
//
// The error names the task and the field; it is ErrFull if there is no room, and ErrConflict if a key names another task.
func (b *Book) Submit(now snapshot.Instant, specs []*Spec) ([]Info, error) {
	fresh, bytes, err := b.inspect(specs)
	if err != nil {
		return nil, err
	}
	if room := uint64(b.limits.MaxQueued) - min(uint64(b.limits.MaxQueued), b.live()); uint64(fresh) > room {
		return nil, fmt.Errorf("submitting tasks (%d): %w: there is room for %d of %d; try again when some have ended", fresh, ErrFull, room, b.limits.MaxQueued)
	}
	if room := b.limits.QueuedBytes - min(b.limits.QueuedBytes, b.liveBytes); b.limits.QueuedBytes > 0 && bytes > room {
		return nil, fmt.Errorf("submitting tasks (%d): %w: they have %d bytes and there is room for %d of %d; try again when some have ended, or put data in files",
			fresh, ErrFull, bytes, room, b.limits.QueuedBytes)
	}
	infos := make([]Info, 0, len(specs))
	for _, spec := range specs {
		r := b.keys[spec.Key]
		if r == nil {
			r = b.accept(now, spec)
		}
		infos = append(infos, r.Info)
	}
	return infos, nil
}

// inspect counts the tasks that are new, and their bytes, or says what is wrong with one.
func (b *Book) inspect(specs []*Spec) (fresh int, bytes uint64, err error) {
	seen := make(map[string]*Spec, len(specs))
	for i, spec := range specs {
		if err := Validate(spec); err != nil {
			return 0, 0, fmt.Errorf("task %d (key %q): %w", i+1, spec.Key, err)
		}
		known := seen[spec.Key]
		if r := b.keys[spec.Key]; r != nil {
			known = r.Spec
		}
		switch {
		case known == nil:
			fresh++
			bytes += uint64(spec.size()) //nolint:gosec // a sum of lengths
			seen[spec.Key] = spec
		case !known.equal(spec):
			return 0, 0, fmt.Errorf("task %d (key %q): %w: choose another key, or submit the same task", i+1, spec.Key, ErrConflict)
		}
	}
	return fresh, bytes, nil
}

func (b *Book) accept(now snapshot.Instant, spec *Spec) *record {
	b.newest++
	r := &record{Info: Info{ID: b.newest, Spec: spec, Accepted: now}}
	b.records.add(r)
	b.keys[spec.Key] = r
	if spec.Job != "" {
		j := b.jobs[spec.Job]
		if j == nil {
			j = &job{name: spec.Job}
			b.jobs[spec.Job] = j
		}
		j.add(r)
	}
	b.counts.Accepted++
	b.liveBytes += uint64(spec.size()) //nolint:gosec // a sum of lengths
	b.dues.add(r)
	b.wait(now, r)
	return r
}

// live is how many tasks have not ended.
func (b *Book) live() uint64 {
	return uint64(b.counts.Queued) + uint64(b.counts.Launched) + uint64(b.counts.Running)
}

// equal reports whether two specs ask for the same thing.
func (s *Spec) equal(o *Spec) bool {
	return s == o || s.Key == o.Key && s.Job == o.Job && s.Profile == o.Profile && s.Directory == o.Directory &&
		s.MaxAttempts == o.MaxAttempts && s.Timeout == o.Timeout && s.KillGrace == o.KillGrace && s.Deadline == o.Deadline &&
		slices.Equal(s.Command, o.Command) && slices.Equal(s.Env, o.Env) && slices.Equal(s.Files, o.Files) && bytes.Equal(s.Input, o.Input)
}
