package driver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// bounded submits a task that has half a minute, and a watch that is told its ends.
func (w *world) bounded(key string) apiv1.TaskService_WatchTasksClient {
	w.t.Helper()
	stream, err := w.tasks.WatchTasks(w.t.Context(), &apiv1.WatchTasksRequest{Application: "app", OnlyEnded: true})
	if err != nil {
		w.t.Fatal(err)
	}
	msg, err := stream.Recv()
	if err != nil || !msg.GetListed() {
		w.t.Fatalf("the watch begins with %v, %v", msg, err)
	}
	spec := &apiv1.TaskSpec{Key: key, Command: []string{"sleep", "600"}, Deadline: durationpb.New(30 * time.Second)}
	got, err := w.tasks.SubmitTasks(w.t.Context(), &apiv1.SubmitTasksRequest{Application: "app", Tasks: []*apiv1.TaskSpec{spec}})
	if err != nil {
		w.t.Fatal(err)
	}
	task := got.GetTasks()[0]
	if until := task.GetDeadlineAt().AsTime().Sub(task.GetAcceptedAt().AsTime()); until != 30*time.Second {
		w.t.Errorf("its deadline is %v after its acceptance", until)
	}
	return stream
}

// expired waits for the end of one task and holds it against what it should be.
func (w *world) expired(stream apiv1.TaskService_WatchTasksClient, text string) {
	w.t.Helper()
	msg, err := stream.Recv()
	if err != nil || len(msg.GetTasks()) != 1 {
		w.t.Fatalf("got %v, %v; want the end of one task", msg, err)
	}
	if task := msg.GetTasks()[0]; task.GetState() != apiv1.TaskState_TASK_STATE_EXPIRED || task.GetResult().GetText() != text {
		w.t.Errorf("it ended as %v, want it expired with %q", task, text)
	}
}

// A task that nobody runs has expired at its deadline, and says so in words although it has no attempt that could.
func TestTaskExpiresWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.apply(0)
		began := time.Now()
		w.expired(w.bounded("a"), "its deadline of 30s passed before it was tried")
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it took %v", took)
		}
		s := w.until(func(s *apiv1.ApplicationStatus) bool { return s.GetTasks().GetExpired() > 0 })
		if s.GetTasks().GetExpired() != 1 || s.GetTasks().GetQueued() != 0 {
			t.Errorf("the application counts %v", s.GetTasks())
		}
		w.stop()
	})
}

// A task that runs is killed at its deadline, and expires when its executor says that it has ended.
func TestTaskExpiresWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.apply(1)
		executor := w.admitted(1)
		watch := w.bounded("a")
		launch := launched(t, executor)
		msg, err := executor.Recv()
		if err != nil || len(msg.GetKills()) != 1 || msg.GetKills()[0].GetReason() != "the task's deadline passed" || msg.GetKills()[0].GetTask().GetTask() != launch.GetTask().GetTask() {
			t.Fatalf("got %v, %v; want an order to kill", msg, err)
		}
		report := &apiv1.Report{Task: launch.GetTask(), Outcome: apiv1.Outcome_OUTCOME_KILLED, Text: "ended"}
		if err := executor.Send(&apiv1.AttachRequest{Reports: []*apiv1.Report{report}}); err != nil {
			t.Fatal(err)
		}
		w.expired(watch, "its deadline of 30s passed after 1 attempt")
		w.stop()
	})
}

// A deadline that makes no sense is refused with the name of its field.
func TestDeadlineIsChecked(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(0)
	for text, deadline := range map[string]*durationpb.Duration{
		"tasks[0].deadline: 0s is over":        {},
		"tasks[0].deadline: -1s is over":       {Seconds: -1},
		"deadline: 8760h0m1s is not between 0": durationpb.New(365*24*time.Hour + time.Second),
		"deadline: 2562047h47m16":              {Seconds: 1 << 60},
	} {
		spec := &apiv1.TaskSpec{Key: "a", Command: []string{"true"}, Deadline: deadline}
		_, err := w.tasks.SubmitTasks(t.Context(), &apiv1.SubmitTasksRequest{Application: "app", Tasks: []*apiv1.TaskSpec{spec}})
		if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), text) {
			t.Errorf("%v: got %v, want %q", deadline, err, text)
		}
	}
}
