package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// A job goes over in pieces, and each task's end comes back once.
func TestRunSeesEachEndOnce(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	job, seen := jobOf(2500)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 2500)
	if want := []int{1000, 1000, 500}; !slices.Equal(s.requests, want) {
		t.Errorf("submitted %v tasks at a time, want %v", s.requests, want)
	}
}

// Tasks with large input go in submissions of about a MiB, and never in an empty one.
func TestSubmissionsAreBoundedInBytes(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	job, seen := jobOf(5)
	for i, size := range []int{700 << 10, 700 << 10, 10, 3 << 20, 10} {
		job.Tasks[i].Input = make([]byte, size)
	}
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 5)
	if want := []int{1, 2, 1, 1}; !slices.Equal(s.requests, want) {
		t.Errorf("submitted %v tasks at a time, want %v", s.requests, want)
	}
}

// However streams break and repeat themselves, each end is seen once.
func TestRunOverStreamsThatBreak(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(rt, "tasks")
		breaks := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(rt, "breaks") // how each stream but the last ends
		s := &server{watches: func(call int, w *watching) error {
			if call > len(breaks) {
				return w.follow()
			}
			switch breaks[call-1] {
			case 0:
				return away()
			case 1:
				return nil // ends as if there was nothing more to come
			case 2:
				if err := w.next(); err != nil {
					return err
				}
				w.sent = 0 // and all of it again
			}
			if err := w.next(); err != nil {
				return err
			}
			return status.Error(codes.ResourceExhausted, "too slow")
		}}
		c := serve(t, s)
		job, seen := jobOf(count)
		if err := c.Run(t.Context(), job); err != nil {
			rt.Fatal(err)
		}
		once(t, seen, count)
		for key, times := range s.runs {
			if times != 1 {
				rt.Errorf("%s was accepted %d times, want once", key, times)
			}
		}
	})
}

// A daemon that ends streams at once, as if there was nothing to come, is not asked again without a pause.
func TestRunPausesBetweenStreams(t *testing.T) {
	const times = 3
	s := &server{watches: func(call int, w *watching) error {
		if call > times {
			return w.follow()
		}
		return nil
	}}
	c := serve(t, s)
	job, seen := jobOf(1)
	began := time.Now()
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 1)
	if took := time.Since(began); took < (50+100+200)*time.Millisecond {
		t.Errorf("opened %d streams within %v, want growing pauses between them", s.streams, took)
	}
}

// A queue that is full is waited for, with fewer tasks at a time until they fit.
func TestRunWaitsForRoom(t *testing.T) {
	s := &server{submits: func(_ int, req *apiv1.SubmitTasksRequest) error {
		if len(req.GetTasks()) > 3 {
			return status.Error(codes.ResourceExhausted, "the queue is full")
		}
		return nil
	}}
	c := serve(t, s)
	job, seen := jobOf(7)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 7)
	if want := []int{3, 2, 2}; !slices.Equal(s.requests, want) {
		t.Errorf("submitted %v tasks at a time, want %v", s.requests, want)
	}
}

// A submission whose answer is lost is sent again, and changes nothing.
func TestLostAnswerIsHarmless(t *testing.T) {
	s := &server{}
	s.submits = func(call int, req *apiv1.SubmitTasksRequest) error {
		if call > 1 {
			return nil
		}
		s.accept(req.GetTasks()...)
		return away()
	}
	c := serve(t, s)
	job, seen := jobOf(3)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 3)
	if want := map[string]int{"t0": 1, "t1": 1, "t2": 1}; !cmp.Equal(s.runs, want) {
		t.Errorf("accepted %v, want each once", s.runs)
	}
}

// A daemon that was restarted without a memory is told again what is still to be done, and only that.
func TestRunRemindsADaemonThatForgot(t *testing.T) {
	s := &server{ends: func(spec *apiv1.TaskSpec) apiv1.TaskState {
		if spec.GetKey() == "t1" {
			return apiv1.TaskState_TASK_STATE_QUEUED
		}
		return apiv1.TaskState_TASK_STATE_SUCCEEDED
	}}
	s.watches = func(call int, w *watching) error {
		if call > 1 {
			return w.follow()
		}
		if err := w.next(); err != nil {
			return err
		}
		s.forget()
		return away()
	}
	c := serve(t, s)
	job, seen := jobOf(3)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 3)
	if want := map[string]int{"t0": 1, "t1": 2, "t2": 1}; !cmp.Equal(s.runs, want) {
		t.Errorf("accepted %v, want t1 again and nothing else", s.runs)
	}
}

// The list of a watch that was opened before a task was accepted says nothing about that task.
func TestRunDoesNotRemindTooEarly(t *testing.T) {
	opened := make(chan struct{})
	s := &server{submits: func(int, *apiv1.SubmitTasksRequest) error { <-opened; return nil }}
	s.watches = func(_ int, w *watching) error {
		if err := w.listed(); err != nil { // an empty list, before anything is accepted
			return err
		}
		close(opened)
		for {
			if err := w.next(); err != nil {
				return err
			}
		}
	}
	c := serve(t, s)
	job, seen := jobOf(3)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	once(t, seen, 3)
	if s.calls != 1 {
		t.Errorf("submitted %d times, want once", s.calls)
	}
}

// Tasks that do not succeed are counted in the error.
func TestRunReportsFailures(t *testing.T) {
	s := &server{ends: func(spec *apiv1.TaskSpec) apiv1.TaskState {
		return map[string]apiv1.TaskState{
			"t0": apiv1.TaskState_TASK_STATE_SUCCEEDED, "t1": apiv1.TaskState_TASK_STATE_FAILED,
			"t2": apiv1.TaskState_TASK_STATE_CANCELLED, "t3": apiv1.TaskState_TASK_STATE_EXPIRED,
		}[spec.GetKey()]
	}}
	c := serve(t, s)
	job, seen := jobOf(4)
	err := c.Run(t.Context(), job)
	if !errors.Is(err, client.ErrIncomplete) || !strings.Contains(err.Error(), "3 of 4") {
		t.Errorf("got %v, want 3 of 4 incomplete", err)
	}
	once(t, seen, 4)
}

// What a daemon refuses for good ends the run at once, on either side of it.
func TestRunEndsWhenThereIsNoPoint(t *testing.T) {
	gone := status.Error(codes.NotFound, "there is no application default/app")
	cases := map[string]*server{
		"submitting": {submits: func(int, *apiv1.SubmitTasksRequest) error { return gone }},
		"following":  {watches: func(int, *watching) error { return gone }},
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			c := serve(t, s)
			job, _ := jobOf(2)
			err := c.Run(t.Context(), job)
			if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want that %s found nothing", err, name)
			}
		})
	}
}

// A run whose context ends says so, and what it waited for.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	s := &server{submits: func(int, *apiv1.SubmitTasksRequest) error {
		cancel(enough)
		return status.Error(codes.ResourceExhausted, "the queue is full")
	}}
	c := serve(t, s)
	job, seen := jobOf(2)
	err := c.Run(ctx, job)
	if err == nil || errors.Is(err, client.ErrIncomplete) {
		t.Errorf("got %v, want that the context ended", err)
	}
	once(t, seen, 0)
}

// Tasks without a name get one, the caller's stay as they are, and other people's tasks are not reported.
func TestRunNamesWithoutTouching(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	job, seen := jobOf(0)
	job.Tasks = []*apiv1.TaskSpec{{Command: []string{"true"}}, {Command: []string{"false"}}}
	before := cloned(job.Tasks)
	s.submits = func(int, *apiv1.SubmitTasksRequest) error {
		s.accept(&apiv1.TaskSpec{Key: "somebody-else", Job: "job"})
		return nil
	}
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"job-1": 1, "job-2": 1}; !cmp.Equal(seen, want) {
		t.Errorf("saw the ends of %v, want %v", seen, want)
	}
	if diff := cmp.Diff(before, job.Tasks, protocmp.Transform()); diff != "" {
		t.Errorf("the caller's tasks were changed:\n%s", diff)
	}
}

// What no daemon can take is refused before anything is sent.
func TestRunRefusesWhatCannotBe(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	twice, _ := jobOf(2)
	twice.Tasks[1].Key = "t0"
	large, _ := jobOf(2)
	large.Tasks[1].Input = make([]byte, 5<<20)
	for want, job := range map[string]client.Job{`the key "t0" is there twice`: twice, `task "t1" has 5242900 bytes`: large} {
		if err := c.Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: got %v, want %s", err, want)
		}
		if _, err := c.Submit(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Submit: got %v, want %s", err, want)
		}
	}
	if s.calls != 0 {
		t.Errorf("the daemon was called %d times, want never", s.calls)
	}
}

// A job without tasks has ended before it began.
func TestRunOfNothing(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	if err := c.Run(t.Context(), client.Job{Application: "app"}); err != nil || s.calls+s.streams != 0 {
		t.Errorf("got %v after %d calls, want nothing after none", err, s.calls+s.streams)
	}
}

// Submit hands over and does not watch.
func TestSubmitDoesNotWait(t *testing.T) {
	s := &server{ends: func(*apiv1.TaskSpec) apiv1.TaskState { return apiv1.TaskState_TASK_STATE_QUEUED }}
	c := serve(t, s)
	job, _ := jobOf(3)
	job.Name = ""
	name, err := c.Submit(t.Context(), job)
	if err != nil || !strings.HasPrefix(name, "job-") {
		t.Fatalf("got %q, %v, want a made-up name", name, err)
	}
	if len(s.book) != 3 || s.streams != 0 || s.book[0].GetJob() != name {
		t.Errorf("the daemon has %v after %d watches, want 3 tasks of job %s after none", s.book, s.streams, name)
	}
	if other := fmt.Sprint(client.JobName("")); other == name {
		t.Errorf("made %s up twice", name)
	}
}
