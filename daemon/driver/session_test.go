package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/driver"
)

// launched waits for a launch.
func launched(t *testing.T, stream apiv1.ExecutorService_AttachClient) *apiv1.Launch {
	t.Helper()
	for {
		msg, err := stream.Recv()
		if err != nil {
			t.Fatalf("waiting for launches: %v", err)
		}
		if len(msg.GetLaunches()) > 0 {
			return msg.GetLaunches()[0]
		}
	}
}

// A task goes from a client to an executor, and its result comes back: recorded once, acknowledged however often it is reported.
func TestTaskGoesAndResultComesBack(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(1)
	executor := w.admitted(1)
	w.submit(1)
	launch := launched(t, executor)
	report := &apiv1.Report{Task: launch.GetTask(), Outcome: apiv1.Outcome_OUTCOME_SUCCEEDED, Output: []byte("result")}
	for range 2 {
		if err := executor.Send(&apiv1.AttachRequest{Reports: []*apiv1.Report{report}}); err != nil {
			t.Fatal(err)
		}
		for acked := 0; acked == 0; {
			msg, err := executor.Recv()
			if err != nil {
				t.Fatal(err)
			}
			acked = len(msg.GetAcknowledged())
		}
	}
	list, err := w.tasks.ListTasks(t.Context(), &apiv1.ListTasksRequest{Application: "app", WithOutput: true})
	if err != nil || len(list.GetTasks()) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	task := list.GetTasks()[0]
	if task.GetState() != apiv1.TaskState_TASK_STATE_SUCCEEDED || string(task.GetResult().GetOutput()) != "result" || task.GetAttempt() != 1 {
		t.Errorf("got %v", task)
	}
	if s := w.until(func(s *apiv1.ApplicationStatus) bool { return s.GetTasks().GetSucceeded() > 0 }); s.GetTasks().GetSucceeded() != 1 {
		t.Errorf("%d tasks succeeded", s.GetTasks().GetSucceeded())
	}
}

// The task of an executor whose stream breaks and that does not come back is given to another, as a new attempt.
func TestTaskOfALostExecutorIsGivenToAnother(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(2)
	first, second := w.admitted(1), w.admitted(2)
	w.submit(2)
	one, two := launched(t, first), launched(t, second)
	if err := first.CloseSend(); err != nil { // it goes, without a word
		t.Fatal(err)
	}
	report := &apiv1.Report{Task: two.GetTask(), Outcome: apiv1.Outcome_OUTCOME_SUCCEEDED}
	if err := second.Send(&apiv1.AttachRequest{Reports: []*apiv1.Report{report}}); err != nil {
		t.Fatal(err)
	}
	again := launched(t, second)
	if again.GetTask().GetTask() != one.GetTask().GetTask() || again.GetTask().GetAttempt() != 2 {
		t.Errorf("got %v after %v", again.GetTask(), one.GetTask())
	}
}

// Nobody registers who cannot prove who he is, and a registration that is refused for good says so.
func TestRegistrationIsRefused(t *testing.T) {
	w := newWorld(t, func(c *driver.Config) { c.RegisterTimeout = 50 * time.Millisecond })
	w.apply(1)
	w.admitted(1)
	for _, c := range []struct {
		name   string
		id     uint64
		change func(*apiv1.Register)
		want   codes.Code
	}{
		{"other executor's id", 1, func(r *apiv1.Register) { r.Executor = 2 }, codes.Unauthenticated},
		{"other application", 1, func(r *apiv1.Register) { r.Application = "other" }, codes.Unauthenticated},
		{"other namespace", 1, func(r *apiv1.Register) { r.Namespace = "other" }, codes.Unauthenticated},
		{"an executor that was never asked for", 99, nil, codes.PermissionDenied},
		{"another pod's uid", 1, func(r *apiv1.Register) { r.PodUid = "uid-x" }, codes.PermissionDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := w.attach(c.id, c.change)
			if msg, err := stream.Recv(); status.Code(err) != c.want {
				t.Errorf("got %v, %v, want %v", msg, err, c.want)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		stream, err := apiv1.NewExecutorServiceClient(w.conn).Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no registration", func(t *testing.T) {
		stream, err := apiv1.NewExecutorServiceClient(w.conn).Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&apiv1.AttachRequest{Heartbeat: &apiv1.Heartbeat{}}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v", err)
		}
	})
}

// An executor that attaches again takes the place of its former session, which ends.
func TestNewestSessionWins(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(1)
	older := w.admitted(1)
	newer := w.attach(1, nil)
	if msg, err := newer.Recv(); err != nil || msg.GetAdmitted() == nil {
		t.Fatalf("the newer session got %v, %v", msg, err)
	}
	for {
		if _, err := older.Recv(); err != nil {
			if status.Code(err) != codes.Aborted {
				t.Errorf("the older session ended with %v", err)
			}
			break
		}
	}
	w.submit(1)
	launched(t, newer)
}

// When the daemon goes, executors are told to come back, and everything ends in time.
func TestShutdownTellsExecutorsToComeBack(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(1)
	executor := w.admitted(1)
	w.stop()
	told := false
	for {
		msg, err := executor.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the session ended with %v", err)
			}
			break
		}
		told = told || msg.GetReconnect() != nil
	}
	if !told {
		t.Error("the executor was not told to reconnect")
	}
	select {
	case err := <-w.ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server did not end")
	}
}

// Tasks as large as they may be reach an executor that has slots for several of them at once.
func TestLargeTasksGoTogether(t *testing.T) {
	w := newWorld(t, nil)
	spec := &apiv1.ApplicationSpec{Id: "app", Profiles: []*apiv1.ProfileSpec{{Name: "p", Slots: 3, Target: 1, Max: 1}}}
	if _, err := w.apps.ApplyApplication(t.Context(), &apiv1.ApplyApplicationRequest{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	w.until(func(s *apiv1.ApplicationStatus) bool { return s.GetProfiles()[0].GetRunning() == 1 })
	large := &apiv1.TaskSpec{Command: slices.Repeat([]string{strings.Repeat("x", 120<<10)}, 4), Input: make([]byte, 1<<20)}
	for i := range 3 {
		large.Key = fmt.Sprintf("t%d", i)
		if _, err := w.tasks.SubmitTasks(t.Context(), &apiv1.SubmitTasksRequest{Application: "app", Tasks: []*apiv1.TaskSpec{large}}); err != nil {
			t.Fatal(err)
		}
	}
	executor := w.attach(1, func(r *apiv1.Register) { r.Slots = 3 }) // the tasks wait: they are launched in one step
	for got := 0; got < 3; {
		msg, err := executor.Recv()
		if err != nil {
			t.Fatalf("after %d launches: %v", got, err)
		}
		got += len(msg.GetLaunches())
	}
}

// A watch lists what is there and then shows each end; deleting the application ends the watch.
func TestWatchTasks(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(1)
	executor := w.admitted(1)
	w.submit(3)
	watch, err := w.tasks.WatchTasks(t.Context(), &apiv1.WatchTasksRequest{Application: "app", Job: "job", OnlyEnded: true})
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := watch.Recv(); err != nil || !msg.GetListed() {
		t.Fatalf("got %v, %v", msg, err)
	}
	for range 3 {
		launch := launched(t, executor)
		report := &apiv1.Report{Task: launch.GetTask(), Outcome: apiv1.Outcome_OUTCOME_SUCCEEDED}
		if err := executor.Send(&apiv1.AttachRequest{Reports: []*apiv1.Report{report}}); err != nil {
			t.Fatal(err)
		}
	}
	for seen := 0; seen < 3; {
		msg, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		seen += len(msg.GetTasks())
	}
	go func() {
		for { // the executor ends when it is told to
			msg, err := executor.Recv()
			if err != nil {
				return
			}
			if msg.GetStop() != nil {
				_ = executor.CloseSend()
			}
		}
	}()
	if _, err := w.apps.DeleteApplication(t.Context(), &apiv1.DeleteApplicationRequest{Application: "app"}); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the watch of a deleted application ended with %v", err)
	}
	if _, err := w.apps.GetApplication(t.Context(), &apiv1.GetApplicationRequest{Application: "app"}); status.Code(err) != codes.NotFound {
		t.Errorf("the deleted application gave %v", err)
	}
}

// Bad requests are refused with the field that is wrong, and change nothing.
func TestBadRequests(t *testing.T) {
	w := newWorld(t, nil)
	w.apply(1)
	apply := func(spec *apiv1.ApplicationSpec) error {
		_, err := w.apps.ApplyApplication(t.Context(), &apiv1.ApplyApplicationRequest{Spec: spec})
		return err
	}
	for _, c := range []struct {
		name string
		do   func() error
		code codes.Code
		text string
	}{
		{"no profile", func() error { return apply(&apiv1.ApplicationSpec{Id: "x"}) }, codes.InvalidArgument, "profiles"},
		{"bad name", func() error { return apply(&apiv1.ApplicationSpec{Id: "X_Y", Profiles: []*apiv1.ProfileSpec{{}}}) }, codes.InvalidArgument, "id:"},
		{"bad quantity", func() error {
			return apply(&apiv1.ApplicationSpec{Id: "x", Profiles: []*apiv1.ProfileSpec{{Cpu: "lots"}}})
		}, codes.InvalidArgument, "lots"},
		{"request over limit", func() error {
			return apply(&apiv1.ApplicationSpec{Id: "x", Profiles: []*apiv1.ProfileSpec{{Cpu: "2", CpuLimit: "1"}}})
		}, codes.InvalidArgument, "cpu"},
		{"unknown field of the template", func() error {
			return apply(&apiv1.ApplicationSpec{Id: "x", Profiles: []*apiv1.ProfileSpec{{PodTemplate: `{"spec":{"contaners":[]}}`}}})
		}, codes.InvalidArgument, "contaners"},
		{"foreign namespace", func() error {
			return apply(&apiv1.ApplicationSpec{Id: "x", Namespace: "kube-system", Profiles: []*apiv1.ProfileSpec{{}}})
		}, codes.InvalidArgument, "kube-system"},
		{"unknown policy", func() error {
			return apply(&apiv1.ApplicationSpec{Id: "x", Policy: &apiv1.PolicyBinding{Policy: "nope"}, Profiles: []*apiv1.ProfileSpec{{}}})
		}, codes.InvalidArgument, "only direct"},
		{"unknown application", func() error {
			_, err := w.apps.GetApplication(t.Context(), &apiv1.GetApplicationRequest{Application: "none"})
			return err
		}, codes.NotFound, "none"},
		{"unknown profile", func() error {
			_, err := w.apps.ScaleApplication(t.Context(), &apiv1.ScaleApplicationRequest{Application: "app", Targets: map[string]uint32{"q": 1}})
			return err
		}, codes.InvalidArgument, "profiles"},
		{"task without a command", func() error {
			_, err := w.tasks.SubmitTasks(t.Context(), &apiv1.SubmitTasksRequest{Application: "app", Tasks: []*apiv1.TaskSpec{{}}})
			return err
		}, codes.InvalidArgument, "command"},
		{"cancel of nothing in particular", func() error {
			_, err := w.tasks.CancelTasks(t.Context(), &apiv1.CancelTasksRequest{Application: "app"})
			return err
		}, codes.InvalidArgument, "all"},
		{"foreign page token", func() error {
			_, err := w.tasks.ListTasks(t.Context(), &apiv1.ListTasksRequest{Application: "app", PageToken: "?"})
			return err
		}, codes.InvalidArgument, "page token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.do()
			if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.text) {
				t.Errorf("got %v, want %v and %q", err, c.code, c.text)
			}
		})
	}
	list, err := w.apps.ListApplications(t.Context(), &apiv1.ListApplicationsRequest{})
	if err != nil || len(list.GetApplications()) != 1 {
		t.Errorf("afterwards there are %v, %v", list.GetApplications(), err)
	}
}
