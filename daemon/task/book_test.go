package task_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

var roomy = task.Limits{MaxQueued: 1 << 20, MaxAttempts: 3, Retain: 1 << 20, RetainBytes: 1 << 30}

func spec(key string) *task.Spec { return &task.Spec{Key: key, Command: []string{"true"}} }

func newBook(t *testing.T, l task.Limits, keys ...string) *task.Book {
	t.Helper()
	b := task.New(l)
	for _, key := range keys {
		if _, err := b.Submit(1, []*task.Spec{spec(key)}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// assign gives an executor up to n tasks of profile 0.
func assign(b *task.Book, executor snapshot.ID, n uint32) []task.Ref {
	var refs []task.Ref
	for _, a := range b.Assign(2, []task.Slot{{Executor: executor, Free: n}}) {
		for _, l := range a.Launches {
			refs = append(refs, l.Ref)
		}
	}
	return refs
}

func report(b *task.Book, executor snapshot.ID, ref task.Ref, o task.Outcome) task.Recorded {
	return b.Report(3, executor, []task.Report{{Ref: ref, Outcome: o, Output: []byte("out")}})
}

// first returns the state of the first task.
func first(t *testing.T, b *task.Book) task.State {
	t.Helper()
	info, ok := b.Info(1)
	if !ok {
		t.Fatal("task 1 is not known")
	}
	return info.State
}

// A failure costs an attempt, and the last attempt's failure is the task's.
func TestFailuresUseUpAttempts(t *testing.T) {
	b := newBook(t, roomy, "a")
	for attempt := uint32(1); attempt <= 3; attempt++ {
		refs := assign(b, 7, 1)
		if want := []task.Ref{{Task: 1, Attempt: attempt}}; !cmp.Equal(refs, want) {
			t.Fatalf("assigned %v, want %v", refs, want)
		}
		report(b, 7, refs[0], task.OutcomeFailed)
	}
	if got := first(t, b); got != task.Failed {
		t.Errorf("after three failures it is %v", got)
	}
	if refs := assign(b, 7, 1); refs != nil {
		t.Errorf("a failed task was assigned: %v", refs)
	}
}

// A task that cannot run anywhere is not tried again.
func TestInvalidEndsAtOnce(t *testing.T) {
	b := newBook(t, roomy, "a")
	report(b, 7, assign(b, 7, 1)[0], task.OutcomeInvalid)
	if got := first(t, b); got != task.Failed {
		t.Errorf("it is %v, want Failed", got)
	}
}

// A task that comes back through no fault of its own costs nothing, but does not go round for ever.
func TestFreeRetriesAreBounded(t *testing.T) {
	b := newBook(t, roomy, "a")
	rounds := 0
	for ; rounds < 1000 && !first(t, b).Terminal(); rounds++ {
		report(b, 7, assign(b, 7, 1)[0], task.OutcomeReturned)
	}
	if rounds != 103 {
		t.Errorf("it came back %d times before it failed, want 100 for nothing and 3 that count", rounds)
	}
}

// A crash counts against every task that the executor held, whether it was seen to start or not; an eviction against none.
func TestLossCostsWhatItShould(t *testing.T) {
	for _, blameful := range []bool{true, false} {
		b := newBook(t, task.Limits{MaxQueued: 9, MaxAttempts: 1, Retain: 9, RetainBytes: 999}, "a", "b")
		refs := assign(b, 7, 2)
		report(b, 7, refs[0], task.OutcomeStarted)
		changed := b.ExecutorLost(4, 7, task.Loss{Text: "executor 7 crashed", Blameful: blameful})
		want := task.Queued
		if blameful {
			want = task.Failed
		}
		if len(changed) != 2 || changed[0].State != want || changed[1].State != want {
			t.Errorf("blameful %v: %v, want both %v", blameful, changed, want)
		}
		if blameful && changed[0].Result.Text != "executor 7 crashed" {
			t.Errorf("the result says %q", changed[0].Result.Text)
		}
	}
}

// The result of an attempt that was given up is acknowledged, so that the executor stops sending it, and changes nothing.
func TestSupersededResultIsDiscarded(t *testing.T) {
	b := newBook(t, roomy, "a")
	old := assign(b, 7, 1)[0]
	b.ExecutorLost(3, 7, task.Loss{})
	for _, when := range []string{"while it waits", "while another runs it"} {
		out := report(b, 7, old, task.OutcomeSucceeded)
		if !cmp.Equal(out.Ack, []task.Ref{old}) || out.Changed != nil {
			t.Errorf("%s: %+v, want an acknowledgement and no change", when, out)
		}
		assign(b, 8, 1)
	}
	if got := first(t, b); got != task.Launched {
		t.Errorf("it is %v, want Launched by executor 8", got)
	}
}

// Another executor's word about an attempt is worth nothing.
func TestReportOfAStranger(t *testing.T) {
	b := newBook(t, roomy, "a")
	ref := assign(b, 7, 1)[0]
	if out := report(b, 8, ref, task.OutcomeSucceeded); out.Changed != nil {
		t.Errorf("executor 8 ended a task of executor 7: %v", out.Changed)
	}
}

// A running task that is cancelled stays with its executor until that says that it ended, and is not tried again however it ended.
func TestCancelOfARunningTask(t *testing.T) {
	for outcome, want := range map[task.Outcome]task.State{
		task.OutcomeKilled: task.Cancelled, task.OutcomeFailed: task.Cancelled, task.OutcomeReturned: task.Cancelled, task.OutcomeSucceeded: task.Succeeded,
	} {
		b := newBook(t, roomy, "a")
		ref := assign(b, 7, 1)[0]
		changed, kills := b.Cancel(3, []string{"a", "a", "nobody"}, "")
		if changed != nil || !cmp.Equal(kills, []task.Kill{{Executor: 7, Ref: ref, Fate: task.Cancelled}}) {
			t.Errorf("changed %v, kills %v; want one kill", changed, kills)
		}
		report(b, 7, ref, outcome)
		if got := first(t, b); got != want {
			t.Errorf("after outcome %d it is %v, want %v", outcome, got, want)
		}
	}
}

// An executor that comes back is told what to drop and what to kill; a launch that never reached it is given out again for nothing.
func TestAdoption(t *testing.T) {
	b := newBook(t, task.Limits{MaxQueued: 9, MaxAttempts: 1, Retain: 9, RetainBytes: 999}, "a", "b", "c", "d")
	refs := assign(b, 7, 4)
	b.Cancel(3, []string{"b"}, "")
	report(b, 7, refs[3], task.OutcomeStarted)
	stale := task.Ref{Task: 1, Attempt: 9}
	got := b.Adopt(4, 7, []task.Ref{stale, refs[1], refs[0], refs[1]})
	if !cmp.Equal(got.Keep, refs[:2]) || !cmp.Equal(got.Discard, []task.Ref{stale}) || !cmp.Equal(got.Kill, []task.Kill{{Executor: 7, Ref: refs[1], Fate: task.Cancelled}}) {
		t.Errorf("adoption %+v", got)
	}
	if len(got.Changed) != 2 || got.Changed[0].State != task.Queued || got.Changed[1].State != task.Failed {
		t.Errorf("changed %+v, want the third to wait and the fourth, which had started, to have failed", got.Changed)
	}
}

// All tasks of a submission are accepted, or none.
func TestSubmissionIsWhole(t *testing.T) {
	b := newBook(t, task.Limits{MaxQueued: 2, Retain: 9, RetainBytes: 999}, "a")
	other := spec("a")
	other.Command = []string{"false"}
	for _, test := range []struct {
		specs []*task.Spec
		want  error
		text  string
	}{
		{[]*task.Spec{spec("b"), spec("c")}, task.ErrFull, "room for 1 of 2"},
		{[]*task.Spec{spec("b"), other}, task.ErrConflict, `task 2 (key "a")`},
		{[]*task.Spec{spec("b"), {Key: "c"}}, nil, `task 2 (key "c"): command: is empty`},
	} {
		_, err := b.Submit(2, test.specs)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("error %v, want %v with %q", err, test.want, test.text)
		}
	}
	if got := b.Counts().Accepted; got != 1 {
		t.Errorf("%d tasks were accepted, want 1", got)
	}
	if infos, err := b.Submit(2, []*task.Spec{spec("a"), spec("b"), spec("b")}); err != nil || infos[0].ID != 1 || infos[1].ID != infos[2].ID {
		t.Errorf("known tasks take no room: %v, %v", infos, err)
	}
}

// A task that was forgotten leaves its key to others.
func TestForgottenKeyIsFree(t *testing.T) {
	b := newBook(t, task.Limits{MaxQueued: 9, Retain: 1, RetainBytes: 999}, "a", "b")
	for _, ref := range assign(b, 7, 2) {
		report(b, 7, ref, task.OutcomeSucceeded)
	}
	infos, err := b.Submit(5, []*task.Spec{spec("a"), spec("b")})
	if err != nil || infos[0].ID != 3 || infos[1].ID != 2 {
		t.Errorf("%v, %v; want a new task for a and the old one for b", infos, err)
	}
}

// A result too large to be kept is still told once, with the change.
func TestResultBeyondRetention(t *testing.T) {
	b := newBook(t, task.Limits{MaxQueued: 9, Retain: 9, RetainBytes: 2}, "a")
	out := report(b, 7, assign(b, 7, 1)[0], task.OutcomeSucceeded)
	if len(out.Changed) != 1 || string(out.Changed[0].Result.Output) != "out" {
		t.Errorf("changed %+v, want the result", out.Changed)
	}
	if _, kept := b.Info(1); kept {
		t.Error("it is kept beyond the bound")
	}
}

// Tightening the bounds lets go of ended tasks and of nothing else.
func TestSetLimits(t *testing.T) {
	b := newBook(t, roomy, "a", "b", "c")
	for _, ref := range assign(b, 7, 2) {
		report(b, 7, ref, task.OutcomeSucceeded)
	}
	b.SetLimits(task.Limits{})
	if got := b.List(task.Query{}); len(got) != 1 || got[0].Spec.Key != "c" {
		t.Errorf("left: %v, want c alone", got)
	}
}

// An idle executor is filled before the next gets anything.
func TestOneExecutorIsFilledFirst(t *testing.T) {
	b := newBook(t, roomy, "a", "b", "c")
	got := b.Assign(2, []task.Slot{{Executor: 9, Free: 2}, {Executor: 4, Free: 2}, {Executor: 5, Free: 2}})
	if len(got) != 2 || got[0].Executor != 9 || len(got[0].Launches) != 2 || len(got[1].Launches) != 1 {
		t.Errorf("assigned %+v", got)
	}
}

// A page of a job goes on where the last one ended, also when that task is forgotten.
func TestPagesOfAJob(t *testing.T) {
	b := task.New(roomy)
	for i := range 1500 {
		s := spec(fmt.Sprint(i))
		s.Job = []string{"odd", "even"}[i%2]
		if _, err := b.Submit(1, []*task.Spec{s}); err != nil {
			t.Fatal(err)
		}
	}
	var seen int
	for after := task.ID(0); ; {
		page := b.List(task.Query{Job: "even", After: after, Limit: 100})
		if len(page) == 0 {
			break
		}
		seen += len(page)
		after = page[len(page)-1].ID
	}
	if seen != 750 {
		t.Errorf("%d tasks in all pages, want 750", seen)
	}
	b.Cancel(2, nil, "odd")
	b.SetLimits(task.Limits{})
	if page := b.List(task.Query{Job: "even", After: 1499}); len(page) != 1 {
		t.Errorf("after a forgotten task: %d, want 1", len(page))
	}
	if page := b.List(task.Query{After: 1 << 63}); page != nil {
		t.Errorf("after the end of all: %v", page)
	}
}

// Tasks are found behind a gap of forgotten ones.
func TestGapOfForgottenTasks(t *testing.T) {
	b := task.New(roomy)
	for i := range 2000 {
		s := spec(fmt.Sprint(i))
		if i >= 500 && i < 1535 {
			s.Job = "gap"
		}
		if _, err := b.Submit(1, []*task.Spec{s}); err != nil {
			t.Fatal(err)
		}
	}
	b.Cancel(2, nil, "gap")
	b.SetLimits(task.Limits{})
	var want task.ID
	for _, info := range b.List(task.Query{}) {
		if want++; want == 501 {
			want = 1536 // the first of its page
		}
		if info.ID != want {
			t.Fatalf("task %d is listed where %d should be", info.ID, want)
		}
	}
	if want != 2000 {
		t.Errorf("the last is %d, want 2000", want)
	}
}

// One task through its whole life: submitted, given out, started, ended, with a million waiting behind it.
func BenchmarkCycle(b *testing.B) {
	for _, backlog := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint("backlog=", backlog), func(b *testing.B) {
			limits := task.Limits{MaxQueued: 1 << 21, MaxAttempts: 3, Retain: 1000, RetainBytes: 1 << 20}
			book := task.New(limits)
			command := []string{"true"}
			for i := range backlog {
				if _, err := book.Submit(1, []*task.Spec{{Key: fmt.Sprint("backlog", i), Command: command}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			n := 0
			for ; b.Loop(); n++ {
				if _, err := book.Submit(1, []*task.Spec{{Key: fmt.Sprint(n), Command: command}}); err != nil {
					b.Fatal(err)
				}
				ref := assign(book, 1, 1)[0]
				report(book, 1, ref, task.OutcomeStarted)
				report(book, 1, ref, task.OutcomeSucceeded)
			}
		})
	}
}

// A million tasks that wait cost less than a kilobyte each beside what they were submitted with.
func BenchmarkMemory(b *testing.B) {
	command := []string{"true"}
	const n = 1_000_000
	specs := make([]*task.Spec, n)
	for i := range specs {
		specs[i] = &task.Spec{Key: fmt.Sprint(i), Command: command, Job: "job"}
	}
	b.ReportAllocs()
	for b.Loop() {
		book := task.New(task.Limits{MaxQueued: n, MaxAttempts: 1})
		for i := range specs {
			if _, err := book.Submit(1, specs[i:i+1]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
