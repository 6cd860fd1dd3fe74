package task_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// The queue is bounded by bytes too, refuses whole what does not fit, and has room again when tasks have ended.
func TestQueueIsBoundedByBytes(t *testing.T) {
	b := task.New(task.Limits{MaxQueued: 100, QueuedBytes: 1000, MaxAttempts: 1, Retain: 10, RetainBytes: 10_000})
	big := func(key string) *task.Spec {
		return &task.Spec{Key: key, Command: []string{"c"}, Input: make([]byte, 398)}
	}
	if _, err := b.Submit(1, []*task.Spec{big("a"), big("b")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Submit(2, []*task.Spec{big("c")}); !errors.Is(err, task.ErrFull) {
		t.Fatalf("a third task gave %v", err)
	}
	if _, err := b.Submit(2, []*task.Spec{big("a")}); err != nil {
		t.Errorf("a task that is there already gave %v", err)
	}
	given := b.Assign(3, []task.Slot{{Executor: snapshot.ID(1), Free: 1}})
	b.Report(4, 1, []task.Report{{Ref: given[0].Launches[0].Ref, Outcome: task.OutcomeSucceeded}})
	if _, err := b.Submit(5, []*task.Spec{big("c")}); err != nil {
		t.Errorf("after an end a third task gave %v", err)
	}
}

// Ended tasks are kept within the bound on bytes, their commands and environment counted.
func TestRetentionCountsWhatTasksWere(t *testing.T) {
	b := task.New(task.Limits{MaxQueued: 100, MaxAttempts: 1, Retain: 10, RetainBytes: 1000})
	for n, key := range []string{"a", "b", "c"} {
		spec := &task.Spec{Key: key, Command: []string{"c", strings.Repeat("x", 400)}}
		if _, err := b.Submit(snapshot.Instant(n+1), []*task.Spec{spec}); err != nil {
			t.Fatal(err)
		}
		given := b.Assign(snapshot.Instant(n+1), []task.Slot{{Executor: 1, Free: 1}})
		b.Report(snapshot.Instant(n+1), 1, []task.Report{{Ref: given[0].Launches[0].Ref, Outcome: task.OutcomeSucceeded}})
	}
	if kept := b.List(task.Query{}); len(kept) != 2 || kept[0].Spec.Key != "b" {
		t.Errorf("%d tasks are kept", len(kept))
	}
}
