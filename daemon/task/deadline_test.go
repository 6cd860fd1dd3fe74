package task_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

const bound = 30 * time.Second

// late is the first moment at which a task of bounded is late.
const late = snapshot.Instant(1) + snapshot.Instant(bound)

// bounded is a book whose tasks were accepted at 1 and have half a minute.
func bounded(t *testing.T, keys ...string) *task.Book {
	t.Helper()
	b := task.New(roomy)
	for _, key := range keys {
		s := spec(key)
		s.Deadline = bound
		if _, err := b.Submit(1, []*task.Spec{s}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A task that waits has until its deadline and not a moment longer, however often it was tried, and its result says what was known last.
func TestWaitingTaskExpires(t *testing.T) {
	b := bounded(t, "never", "tried")
	for b.Counts().Retried == 0 { // the second task is tried twice, and then waits again
		for _, ref := range assign(b, 7, 2) {
			outcome := task.OutcomeFailed
			if ref.Task == 1 {
				outcome = task.OutcomeReturned
			}
			b.Report(3, 7, []task.Report{{Ref: ref, Outcome: outcome, Text: "text"}})
		}
	}
	if changed, kills := b.Expire(late - 1); changed != nil || kills != nil || b.NextDeadline() != late {
		t.Errorf("a moment before its deadline: %v and %v, the next at %v", changed, kills, b.NextDeadline())
	}
	changed, kills := b.Expire(late)
	if len(changed) != 2 || kills != nil || b.NextDeadline() != 0 {
		t.Fatalf("changed %v, kills %v, next deadline %v; want both tasks and nothing else", changed, kills, b.NextDeadline())
	}
	for i, want := range []string{"its deadline of 30s passed after 2 attempts", "its deadline of 30s passed after 2 attempts: text"} {
		if got := changed[i]; got.State != task.Expired || got.Ended != late || got.Result.Text != want {
			t.Errorf("%+v, want Expired with %q", got, want)
		}
	}
	if again, _ := b.Expire(late + 1); again != nil || b.Counts().Expired != 2 {
		t.Errorf("it expired twice: %v", again)
	}
}

// A task that an executor holds is killed once, and what the executor says then decides; success counts, whenever it comes.
func TestHeldTaskExpires(t *testing.T) {
	for outcome, want := range map[task.Outcome]task.State{
		task.OutcomeKilled: task.Expired, task.OutcomeFailed: task.Expired, task.OutcomeReturned: task.Expired, task.OutcomeInvalid: task.Expired,
		task.OutcomeTimeout: task.Expired, task.OutcomeSucceeded: task.Succeeded,
	} {
		for _, told := range []bool{true, false} { // the report may overtake the timer
			b := bounded(t, "a")
			ref := assign(b, 7, 1)[0]
			if told {
				kill := []task.Kill{{Executor: 7, Ref: ref, Fate: task.Expired}}
				if changed, kills := b.Expire(late); changed != nil || !cmp.Equal(kills, kill) {
					t.Errorf("changed %v, kills %v; want one kill", changed, kills)
				}
				if _, kills := b.Expire(late); kills != nil || b.NextDeadline() != 0 {
					t.Errorf("it is killed twice: %v, next at %v", kills, b.NextDeadline())
				}
				if got := b.Adopt(late, 7, []task.Ref{ref}); !cmp.Equal(got.Kill, kill) {
					t.Errorf("its executor came back and is told to kill %v", got.Kill)
				}
			}
			b.Report(late, 7, []task.Report{{Ref: ref, Outcome: outcome, Text: "it says"}})
			info, _ := b.Info(1)
			text := map[task.Outcome]string{
				task.OutcomeSucceeded: "it says", task.OutcomeKilled: "its deadline of 30s passed after 1 attempt",
			}[outcome]
			if text == "" {
				text = "its deadline of 30s passed after 1 attempt: it says"
			}
			if info.State != want || info.Result.Text != text || b.NextDeadline() != 0 {
				t.Errorf("after outcome %d (told: %t) it is %v: %q, want %v: %q", outcome, told, info.State, info.Result.Text, want, text)
			}
		}
	}
}

// The loss of the executor ends a task that was to be killed, whoever is to blame; an executor that comes back without it, too.
func TestExpiredTaskIsLost(t *testing.T) {
	for what, lose := range map[string]func(*task.Book) []task.Info{
		"blameful loss": func(b *task.Book) []task.Info {
			return b.ExecutorLost(late, 7, task.Loss{Text: "gone", Blameful: true})
		},
		"blameless loss": func(b *task.Book) []task.Info { return b.ExecutorLost(late, 7, task.Loss{Text: "gone"}) },
		"empty-handed":   func(b *task.Book) []task.Info { return b.Adopt(late, 7, nil).Changed },
		"loss before due": func(b *task.Book) []task.Info {
			b.ExecutorLost(late-1, 7, task.Loss{})
			c, _ := b.Expire(late)
			return c
		},
	} {
		b := bounded(t, "a")
		assign(b, 7, 1)
		if what != "loss before due" {
			b.Expire(late)
		}
		if changed := lose(b); len(changed) != 1 || changed[0].State != task.Expired {
			t.Errorf("%s: %+v, want it Expired", what, changed)
		}
	}
}

// What was asked for first counts: a cancelled task stays Cancelled when its deadline passes, and one that is late is not Cancelled any more.
func TestCancelAndDeadline(t *testing.T) {
	for at, want := range map[snapshot.Instant]task.State{late - 1: task.Cancelled, late: task.Expired} {
		for _, held := range []bool{false, true} {
			b := bounded(t, "a")
			if held {
				assign(b, 7, 1)
			}
			_, kills := b.Cancel(at, []string{"a"}, "")
			if held && (len(kills) != 1 || kills[0].Fate != want) {
				t.Errorf("cancelled at %v: kills %v, want one for %v", at, kills, want)
			}
			if _, kills := b.Expire(late + 1); kills != nil {
				t.Errorf("it is killed again: %v", kills)
			}
			b.ExecutorLost(late+1, 7, task.Loss{})
			if got := first(t, b); got != want {
				t.Errorf("cancelled at %v (held: %t) it is %v, want %v", at, held, got, want)
			}
		}
	}
}

// A task that is late is not given out, even if nobody has called Expire since; those behind it are.
func TestLateTaskIsNotAssigned(t *testing.T) {
	b := bounded(t, "a", "b")
	if _, err := b.Submit(2, []*task.Spec{spec("c")}); err != nil {
		t.Fatal(err)
	}
	got := b.Assign(late, []task.Slot{{Executor: 7, Free: 3}, {Executor: 8, Free: 3}})
	if len(got) != 1 || got[0].Executor != 7 || len(got[0].Launches) != 1 || got[0].Launches[0].Ref.Task != 3 {
		t.Errorf("assigned %+v, want the third task alone", got)
	}
	if b.Busy(8) != 0 {
		t.Error("executor 8 is busy with nothing")
	}
}

// The next deadline is that of a task that still has one: those that end, are cancelled or have none do not count.
func TestNextDeadline(t *testing.T) {
	b := task.New(roomy)
	var order []string
	for i, seconds := range []time.Duration{5, 0, 3, 9, 3, 7} {
		s := spec(fmt.Sprint(i))
		s.Deadline = seconds * time.Second
		if _, err := b.Submit(0, []*task.Spec{s}); err != nil {
			t.Fatal(err)
		}
	}
	b.Cancel(1, []string{"0"}, "")
	for at := b.NextDeadline(); at != 0; at = b.NextDeadline() {
		changed, _ := b.Expire(at)
		for _, c := range changed {
			order = append(order, c.Spec.Key)
		}
	}
	if want := []string{"2", "4", "5", "3"}; !slices.Equal(order, want) {
		t.Errorf("they expired in the order %v, want %v", order, want)
	}
	if got := first(t, b); got != task.Cancelled {
		t.Errorf("the first is %v", got)
	}
}

// The same key with another deadline is another task.
func TestDeadlineIsPartOfTheTask(t *testing.T) {
	b := bounded(t, "a")
	if _, err := b.Submit(2, []*task.Spec{spec("a")}); err == nil {
		t.Error("a task without its deadline was taken for the same")
	}
}

// What a deadline costs: one that ends is no burden until its deadline, and the next is found however many there are.
func BenchmarkDeadlines(b *testing.B) {
	for _, waiting := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			book := task.New(task.Limits{MaxQueued: 1 << 21, MaxAttempts: 3, Retain: 1000, RetainBytes: 1 << 20})
			submit := func(key string, deadline time.Duration) {
				if _, err := book.Submit(1, []*task.Spec{{Key: key, Command: []string{"true"}, Deadline: deadline}}); err != nil {
					b.Fatal(err)
				}
			}
			for i := range waiting {
				submit(fmt.Sprint("waiting", i), time.Hour+time.Duration(i*7919%waiting))
			}
			b.ReportAllocs()
			n := 0
			for ; b.Loop(); n++ {
				submit(fmt.Sprint(n), time.Minute)
				if book.NextDeadline() == 0 {
					b.Fatal("there is no deadline")
				}
				book.Cancel(2, []string{fmt.Sprint(n)}, "")
			}
		})
	}
}
