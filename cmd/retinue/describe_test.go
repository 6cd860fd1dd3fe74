package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// A task's deadline is told as long as it has one, and the time that is left as long as that matters; what never ran has no exit code.
func TestDeadlineIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		bounded := &apiv1.Task{
			Key: "a", State: apiv1.TaskState_TASK_STATE_QUEUED,
			AcceptedAt: timestamppb.New(now), DeadlineAt: timestamppb.New(now.Add(90 * time.Second)),
		}
		expired := &apiv1.Task{
			Key: "a", State: apiv1.TaskState_TASK_STATE_EXPIRED, AcceptedAt: bounded.GetAcceptedAt(), DeadlineAt: bounded.GetDeadlineAt(),
			Result: &apiv1.Report{Text: "its deadline of 1m30s passed before it was tried"},
		}
		check := func(task *apiv1.Task, left string, lines ...string) {
			t.Helper()
			if got := timeLeft(task); got != left {
				t.Errorf("%q is left, want %q", got, left)
			}
			text := describeTask(task)
			for _, line := range lines {
				if !strings.Contains(text, line+"\n") {
					t.Errorf("there is no line %q in\n%s", line, text)
				}
			}
			if u := (unit{Task: task}); taskExit(u) != "" || taskTook(u) != "" || strings.Contains(text, "Exit code") {
				t.Errorf("it has an exit code, or took time: %q %q\n%s", taskExit(u), taskTook(u), text)
			}
		}
		time.Sleep(30 * time.Second) // of the bubble's time
		check(bounded, "60s", "Deadline:      1m30s after it was accepted, 60s left")
		time.Sleep(time.Hour)
		check(bounded, "0s", "Deadline:      1m30s after it was accepted, 0s left")
		check(expired, "", "State:         expired", "Deadline:      1m30s after it was accepted", "Why:           its deadline of 1m30s passed before it was tried")
		unbounded := &apiv1.Task{Key: "a", State: apiv1.TaskState_TASK_STATE_QUEUED, AcceptedAt: timestamppb.New(now)}
		if check(unbounded, ""); strings.Contains(describeTask(unbounded), "Deadline") {
			t.Error("a task without a deadline is shown with one")
		}
	})
}
