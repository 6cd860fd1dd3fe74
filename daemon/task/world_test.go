package task_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// world is a book beside its model, and all that executors were ever given.
type world struct {
	book  *task.Book
	model *model
	now   snapshot.Instant
	given []task.Ref
	ended map[task.ID]task.State // as the changes say
}

var (
	executors = rapid.Map(rapid.IntRange(1, 4), func(n int) snapshot.ID { return snapshot.ID(n) })
	keys      = rapid.Map(rapid.IntRange(0, 30), func(n int) string { return fmt.Sprint("k", n) })
	jobs      = rapid.SampledFrom([]string{"", "a", "b"})
	outcomes  = rapid.SampledFrom([]task.Outcome{1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 99})
)

func anySpec(t *rapid.T) *task.Spec {
	key := keys.Draw(t, "key")
	n := int(key[len(key)-1])
	return &task.Spec{ // nearly always the same for the same key
		Key: key, Job: []string{"", "a", "b"}[len(key)%3], Profile: snapshot.Profile(n % 3), Command: []string{"x"},
		MaxAttempts: uint32(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 5}).Draw(t, "attempts")), Input: []byte(key),
		Deadline: time.Duration([]int{0, 3, 0, 12, 30}[n%5]),
	}
}

func (w *world) anyRef(t *rapid.T) task.Ref {
	if len(w.given) == 0 || rapid.IntRange(0, 9).Draw(t, "made up") == 0 {
		return task.Ref{Task: task.ID(rapid.IntRange(0, 40).Draw(t, "task")), Attempt: uint32(rapid.IntRange(0, 3).Draw(t, "attempt"))}
	}
	recent := w.given[max(0, len(w.given)-12):]
	return rapid.SampledFrom(recent).Draw(t, "ref")
}

func (w *world) submit(t *rapid.T) {
	var specs []*task.Spec
	for range rapid.IntRange(1, 6).Draw(t, "tasks") {
		specs = append(specs, anySpec(t))
	}
	infos, err := w.book.Submit(w.now, specs)
	if want := w.model.submit(w.now, specs); !errors.Is(err, want) {
		t.Fatalf("submitting gave %v, want %v", err, want)
	}
	for i := range infos {
		if infos[i].Spec.Key != specs[i].Key {
			t.Fatalf("task %d of the answer is %q, want %q", i, infos[i].Spec.Key, specs[i].Key)
		}
	}
}

func (w *world) assign(t *rapid.T) {
	var slots []task.Slot
	for range rapid.IntRange(1, 3).Draw(t, "slots") {
		x := executors.Draw(t, "executor")
		slots = append(slots, task.Slot{Executor: x, Profile: snapshot.Profile(x % 3), Free: uint32(rapid.IntRange(0, 4).Draw(t, "free"))})
	}
	got := w.book.Assign(w.now, slots)
	same(t, "assignments", got, w.model.assign(w.now, slots))
	for _, a := range got {
		for _, l := range a.Launches {
			w.given = append(w.given, l.Ref)
		}
	}
}

func (w *world) report(t *rapid.T) {
	x := executors.Draw(t, "executor")
	var reports []task.Report
	var ack []task.Ref
	for range rapid.IntRange(1, 5).Draw(t, "reports") {
		r := task.Report{Ref: w.anyRef(t), Outcome: outcomes.Draw(t, "outcome"), Output: make([]byte, rapid.IntRange(0, 40).Draw(t, "output"))}
		if held := w.model.holds(x); len(held) > 0 && rapid.Bool().Draw(t, "current") {
			h := rapid.SampledFrom(held).Draw(t, "held")
			r.Ref = task.Ref{Task: h.ID, Attempt: h.Attempt}
		}
		if reports = append(reports, r); r.Outcome != task.OutcomeStarted {
			ack = append(ack, r.Ref)
		}
	}
	out := w.book.Report(w.now, x, reports)
	w.model.report(w.now, x, reports)
	same(t, "acknowledgements", out.Ack, ack)
	w.changes(t, out.Changed)
	requeued := 0
	for _, c := range out.Changed {
		if c.State == task.Queued {
			requeued++
		}
	}
	same(t, "requeued", out.Requeued, requeued)
}

func (w *world) lose(t *rapid.T) {
	x, loss := executors.Draw(t, "executor"), task.Loss{Text: "gone", Blameful: rapid.Bool().Draw(t, "blameful")}
	w.changes(t, w.book.ExecutorLost(w.now, x, loss))
	w.model.lost(w.now, x, loss)
	same(t, "held by a lost executor", w.book.Holds(x), nil)
}

func (w *world) cancel(t *rapid.T) {
	wanted, job := rapid.SliceOfN(keys, 0, 3).Draw(t, "keys"), jobs.Draw(t, "job")
	if len(wanted) == 0 && job == "" && rapid.IntRange(0, 5).Draw(t, "really all") > 0 {
		return
	}
	changed, kills := w.book.Cancel(w.now, wanted, job)
	same(t, "kills", kills, w.model.cancel(w.now, wanted, job))
	w.changes(t, changed)
}

func (w *world) expire(t *rapid.T) {
	changed, kills := w.book.Expire(w.now)
	var want []task.ID
	for _, m := range w.model.due() {
		if m.late(w.now) && !m.held {
			want = append(want, m.ID)
		}
	}
	same(t, "kills", kills, w.model.expire(w.now))
	var ids []task.ID
	for _, c := range changed {
		ids = append(ids, c.ID)
	}
	same(t, "expired", ids, want)
	w.changes(t, changed)
}

func (w *world) adopt(t *rapid.T) {
	x := executors.Draw(t, "executor")
	var holds []task.Ref
	for range rapid.IntRange(0, 4).Draw(t, "holds") {
		holds = append(holds, w.anyRef(t))
	}
	if rapid.Bool().Draw(t, "honest") {
		holds = append(holds, w.book.Holds(x)...)
	}
	var want task.Adoption
	for _, ref := range slices.CompactFunc(slices.SortedFunc(slices.Values(holds), byRef), func(a, b task.Ref) bool { return a == b }) {
		i := slices.IndexFunc(w.model.holds(x), func(t *modelTask) bool { return t.ID == ref.Task && t.Attempt == ref.Attempt })
		if i < 0 {
			want.Discard = append(want.Discard, ref)
			continue
		}
		want.Keep = append(want.Keep, ref)
		if h := w.model.holds(x)[i]; h.fate != 0 {
			want.Kill = append(want.Kill, h.kill())
		}
	}
	got := w.book.Adopt(w.now, x, holds)
	w.changes(t, got.Changed)
	got.Changed = nil
	same(t, "adoption", got, want)
	for _, h := range w.model.holds(x) {
		if ref := (task.Ref{Task: h.ID, Attempt: h.Attempt}); !slices.Contains(holds, ref) {
			w.model.attemptEnded(w.now, h, lossReport(ref, task.Loss{Text: "the executor came back without it", Blameful: h.State == task.Running}))
		}
	}
	w.model.trim()
}

func byRef(a, b task.Ref) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
}

// changes checks that no task ends twice.
func (w *world) changes(t *rapid.T, changed []task.Info) {
	for _, c := range changed {
		if before, ended := w.ended[c.ID]; ended {
			t.Fatalf("task %d was %v and became %v", c.ID, before, c.State)
		}
		if c.State.Terminal() {
			w.ended[c.ID] = c.State
		}
	}
}

// check compares all that can be seen with the model.
func (w *world) check(t *rapid.T) {
	same(t, "tasks", w.book.List(task.Query{}), w.model.infos(func(*modelTask) bool { return true }))
	job, after, limit := jobs.Draw(t, "listed job"), task.ID(rapid.IntRange(0, 20).Draw(t, "after")), rapid.IntRange(1, 5).Draw(t, "limit")
	want := w.model.infos(func(m *modelTask) bool {
		return (job == "" || m.Spec.Job == job) && m.ID > after && m.State == task.Queued
	})
	same(t, "a page", w.book.List(task.Query{Job: job, After: after, Limit: limit, States: []task.State{task.Queued}}), want[:min(limit, len(want))])
	var counts task.Counts
	for p := range snapshot.Profile(3) {
		var d task.Demand
		for _, m := range w.model.tasks {
			if m.Spec.Profile != p {
				continue
			}
			switch {
			case m.held:
				d.Held++
			case m.State == task.Queued:
				if d.Queued++; d.Queued == 1 || m.since < d.Oldest {
					d.Oldest = m.since
				}
			}
			counts.Queued += count(m.State == task.Queued)
			counts.Launched += count(m.State == task.Launched)
			counts.Running += count(m.State == task.Running)
		}
		same(t, "demand", w.book.Demand(p), d)
	}
	got := w.book.Counts()
	same(t, "counts", task.Counts{Queued: got.Queued, Launched: got.Launched, Running: got.Running}, counts)
	same(t, "accepted", got.Accepted, uint64(w.model.newest))
	same(t, "ended", got.Succeeded+got.Failed+got.Cancelled+got.Expired, uint64(len(w.ended)))
	var next snapshot.Instant
	if due := w.model.due(); len(due) > 0 {
		next = due[0].Deadline()
	}
	same(t, "next deadline", w.book.NextDeadline(), next)
	for x := snapshot.ID(1); x <= 4; x++ {
		var refs []task.Ref
		for _, m := range w.model.holds(x) {
			refs = append(refs, task.Ref{Task: m.ID, Attempt: m.Attempt})
		}
		same(t, "holds", w.book.Holds(x), refs)
		same(t, "busy", w.book.Busy(x), uint32(len(refs)))
	}
}

func count(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}

func same[T any](t *rapid.T, what string, got, want T) {
	t.Helper()
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// Whatever clients ask and executors say, the book does what a slow and obvious one does, and no task ends twice.
func TestBookIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := task.Limits{MaxQueued: 20, MaxAttempts: 2, Retain: 8, RetainBytes: 400}
		w := &world{book: task.New(limits), model: &model{limits: limits}, ended: map[task.ID]task.State{}}
		step := func(do func(*rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				w.now++
				do(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": step(w.submit), "assign": step(w.assign), "assign more": step(w.assign), "report": step(w.report), "report more": step(w.report),
			"lose": step(w.lose), "cancel": step(w.cancel), "adopt": step(w.adopt), "expire": step(w.expire), "": w.check,
		})
	})
}
