package task_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// model is a book that does everything the slow and obvious way: one list of tasks, gone through from the beginning each time.
type model struct {
	limits task.Limits
	tasks  []*modelTask // in order of acceptance
	turn   int          // counts upwards, to tell who queued and who ended first
	newest task.ID
}

type modelTask struct {
	task.Info
	spent, free int
	fate        task.State // what it becomes unless it succeeds, as far as its executor was told to end it
	turn        int        // when it was queued, or ended
	since       snapshot.Instant
	held        bool
}

// doom is what a task becomes that does not succeed, 0 if it may be tried again.
func (t *modelTask) doom(now snapshot.Instant) task.State {
	if t.fate == 0 && t.late(now) {
		return task.Expired
	}
	return t.fate
}

func (t *modelTask) late(now snapshot.Instant) bool {
	return t.Spec.Deadline > 0 && now >= t.Accepted+snapshot.Instant(t.Spec.Deadline)
}

func (m *model) submit(now snapshot.Instant, specs []*task.Spec) error {
	var fresh []*task.Spec
	for _, s := range specs {
		known := slices.IndexFunc(m.tasks, func(t *modelTask) bool { return t.Spec.Key == s.Key })
		again := slices.IndexFunc(fresh, func(f *task.Spec) bool { return f.Key == s.Key })
		switch {
		case known >= 0 && !gocmp.Equal(m.tasks[known].Spec, s), again >= 0 && !gocmp.Equal(fresh[again], s):
			return task.ErrConflict
		case known < 0 && again < 0:
			fresh = append(fresh, s)
		}
	}
	live := len(slices.DeleteFunc(slices.Clone(m.tasks), func(t *modelTask) bool { return t.State.Terminal() }))
	if len(fresh) > 0 && live+len(fresh) > int(m.limits.MaxQueued) {
		return task.ErrFull
	}
	for _, s := range fresh {
		m.newest++
		t := &modelTask{Info: task.Info{ID: m.newest, Spec: s, Accepted: now}}
		m.tasks = append(m.tasks, t)
		m.queue(now, t)
	}
	return nil
}

func (m *model) queue(now snapshot.Instant, t *modelTask) {
	m.turn++
	t.State, t.turn, t.since, t.held = task.Queued, m.turn, now, false
}

func (m *model) end(now snapshot.Instant, t *modelTask, s task.State, r task.Report) {
	m.turn++
	if s == task.Expired {
		tries := map[uint32]string{0: "before it was tried", 1: "after 1 attempt"}[t.Attempt]
		if tries == "" {
			tries = fmt.Sprintf("after %d attempts", t.Attempt)
		}
		why := ": " + r.Text
		if r.Text == "" || r.Outcome == task.OutcomeKilled {
			why = ""
		}
		r.Text = fmt.Sprintf("its deadline of %v passed %s%s", t.Spec.Deadline, tries, why)
		r.Ref = task.Ref{Task: t.ID, Attempt: cmp.Or(r.Ref.Attempt, t.Attempt)}
	}
	t.State, t.turn, t.Ended, t.Result, t.held = s, m.turn, now, r, false
}

// due lists the tasks whose deadlines are still to be seen to, the next one first.
func (m *model) due() []*modelTask {
	due := slices.DeleteFunc(slices.Clone(m.tasks), func(t *modelTask) bool {
		return t.Spec.Deadline == 0 || t.State.Terminal() || t.fate != 0
	})
	slices.SortStableFunc(due, func(a, b *modelTask) int { return cmp.Compare(a.Deadline(), b.Deadline()) })
	return due
}

func (m *model) expire(now snapshot.Instant) (kills []task.Kill) {
	for _, t := range m.due() {
		switch {
		case !t.late(now):
		case t.held:
			t.fate = task.Expired
			kills = append(kills, t.kill())
		default:
			m.end(now, t, task.Expired, t.Result)
		}
	}
	m.trim()
	return kills
}

func (t *modelTask) kill() task.Kill {
	return task.Kill{Executor: t.Executor, Ref: task.Ref{Task: t.ID, Attempt: t.Attempt}, Fate: t.fate}
}

// trim forgets the task that ended first while there are too many.
func (m *model) trim() {
	for {
		var oldest *modelTask
		var count uint32
		var size uint64
		for _, t := range m.tasks {
			if t.State.Terminal() {
				count++
				size += uint64(len(t.Result.Output) + len(t.Result.Errors) + len(t.Result.Text) + sizeOf(t.Spec))
				if oldest == nil || t.turn < oldest.turn {
					oldest = t
				}
			}
		}
		if count <= m.limits.Retain && size <= m.limits.RetainBytes {
			return
		}
		m.tasks = slices.DeleteFunc(m.tasks, func(t *modelTask) bool { return t == oldest })
	}
}

func (m *model) assign(now snapshot.Instant, slots []task.Slot) []task.Assignment {
	var out []task.Assignment
	for _, s := range slots {
		a := task.Assignment{Executor: s.Executor}
		for range s.Free {
			var next *modelTask
			for _, t := range m.tasks {
				if t.State == task.Queued && !t.late(now) && t.Spec.Profile == s.Profile && (next == nil || m.before(t, next)) {
					next = t
				}
			}
			if next == nil {
				break
			}
			next.Attempt++
			next.State, next.Executor, next.Started, next.held = task.Launched, s.Executor, 0, true
			a.Launches = append(a.Launches, task.Launch{Ref: task.Ref{Task: next.ID, Attempt: next.Attempt}, Spec: next.Spec})
		}
		if len(a.Launches) > 0 {
			out = append(out, a)
		}
	}
	return out
}

func (m *model) before(a, b *modelTask) bool {
	if (a.Attempt > 0) != (b.Attempt > 0) {
		return a.Attempt > 0
	}
	return a.turn < b.turn
}

func (m *model) report(now snapshot.Instant, x snapshot.ID, reports []task.Report) {
	for _, r := range reports {
		for _, t := range m.holds(x) {
			if t.ID != r.Ref.Task || t.Attempt != r.Ref.Attempt {
				continue
			}
			if r.Outcome != task.OutcomeStarted {
				m.attemptEnded(now, t, r)
			} else if t.State == task.Launched {
				t.State, t.Started = task.Running, now
			}
		}
		m.trim()
	}
}

func (m *model) attemptEnded(now snapshot.Instant, t *modelTask, r task.Report) {
	allowed := max(1, int(cmp.Or(t.Spec.MaxAttempts, m.limits.MaxAttempts)))
	costs := r.Outcome != task.OutcomeReturned && r.Outcome != task.OutcomeKilled || t.free == 100
	switch {
	case r.Outcome == task.OutcomeSucceeded:
		m.end(now, t, task.Succeeded, r)
	case t.doom(now) != 0:
		m.end(now, t, t.doom(now), r)
	case r.Outcome == task.OutcomeInvalid:
		m.end(now, t, task.Failed, r)
	case !costs:
		t.free++
		m.queue(now, t)
	case t.spent+1 >= allowed:
		m.end(now, t, task.Failed, r)
	default:
		t.spent++
		r.Truncated = r.Truncated || len(r.Output) > 0
		r.Output = nil
		t.Result = r
		m.queue(now, t)
	}
}

func (m *model) holds(x snapshot.ID) []*modelTask {
	return slices.DeleteFunc(slices.Clone(m.tasks), func(t *modelTask) bool { return !t.held || t.Executor != x })
}

func (m *model) lost(now snapshot.Instant, x snapshot.ID, loss task.Loss) {
	for _, t := range m.holds(x) {
		m.attemptEnded(now, t, lossReport(task.Ref{Task: t.ID, Attempt: t.Attempt}, loss))
	}
	m.trim()
}

func lossReport(ref task.Ref, loss task.Loss) task.Report {
	if loss.Blameful {
		return task.Report{Ref: ref, Outcome: task.OutcomeFailed, Text: loss.Text}
	}
	return task.Report{Ref: ref, Outcome: task.OutcomeReturned, Text: loss.Text}
}

func (m *model) cancel(now snapshot.Instant, keys []string, job string) (kills []task.Kill) {
	for _, t := range slices.Clone(m.tasks) {
		if len(keys) > 0 && !slices.Contains(keys, t.Spec.Key) || job != "" && t.Spec.Job != job {
			continue
		}
		if t.State == task.Queued {
			m.end(now, t, cmp.Or(t.doom(now), task.Cancelled), t.Result)
		} else if t.held {
			t.fate = cmp.Or(t.doom(now), task.Cancelled)
			kills = append(kills, t.kill())
		}
	}
	m.trim()
	return kills
}

func (m *model) infos(keep func(*modelTask) bool) []task.Info {
	var infos []task.Info
	for _, t := range m.tasks {
		if keep(t) {
			infos = append(infos, t.Info)
		}
	}
	return infos
}

// sizeOf is how many bytes a spec's own data has.
func sizeOf(s *task.Spec) int {
	n := len(s.Key) + len(s.Job) + len(s.Directory) + len(s.Input) + len(strings.Join(s.Command, ""))
	for _, e := range s.Env {
		n += len(e.Name) + len(e.Value)
	}
	for _, f := range s.Files {
		n += len(f.Name) + len(f.Path)
	}
	return n
}
