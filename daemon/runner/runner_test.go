package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// All that came together is taken together, in order.
func TestInboxKeepsOrder(t *testing.T) {
	in := newInbox()
	for n := range 3 {
		in.put(application.UnwatchTasks{Watch: uint64(n)})
	}
	<-in.more
	for n, ev := range in.take(nil) {
		if ev != (application.UnwatchTasks{Watch: uint64(n)}) {
			t.Errorf("event %d is %v", n, ev)
		}
	}
	select {
	case <-in.more:
		t.Error("the empty inbox says that there is more")
	default:
	}
}

// A peer that talks faster than the application listens is held back until there is room, or until it gives up; others never are.
func TestInboxHoldsBackWhoCanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		for range inboxHigh {
			in.put(application.UnwatchTasks{})
		}
		done := make(chan error, 2)
		impatient, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("gave up"))
		defer cancel()
		go func() { done <- in.putWhenRoom(impatient, application.UnwatchTasks{}) }()
		go func() { done <- in.putWhenRoom(t.Context(), application.UnwatchTasks{}) }()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatal("a full inbox took more from who can wait")
		}
		in.put(application.UnwatchTasks{}) // never waits
		if err := <-done; err == nil || err.Error() != "gave up" {
			t.Errorf("the impatient one got %v", err)
		}
		if got := len(in.take(nil)); got != inboxHigh+1 {
			t.Errorf("%d events were taken", got)
		}
		if err := <-done; err != nil {
			t.Errorf("the patient one got %v", err)
		}
	})
}

// A timer fires once at its moment; setting it anew moves it, setting it to 0 stops it, and one that is overdue fires at once.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := newTimers()
		defer timers.stop()
		timers.set(application.TimerAsk, 1, 1+5_000)
		timers.set(application.TimerAsk, 1, 1+2_000)
		timers.set(application.TimerDecision, 1, 1+1_000)
		timers.set(application.TimerDecision, 1, 0)
		timers.set(application.TimerRetry, 10, 5)
		began := time.Now()
		if got := <-timers.fired; got != application.TimerRetry || time.Since(began) != 0 {
			t.Errorf("first came %d after %v", got, time.Since(began))
		}
		if got := <-timers.fired; got != application.TimerAsk || time.Since(began) != 2_000 {
			t.Errorf("then came %d after %v", got, time.Since(began))
		}
		time.Sleep(time.Hour) // of the bubble
		select {
		case got := <-timers.fired:
			t.Errorf("%d fired although it was moved or stopped", got)
		default:
		}
	})
}

// A watcher that does not read is cut off with ErrSlow, after what it had room for; others go on.
func TestSlowWatcherIsCutOff(t *testing.T) {
	c := newClients()
	slow, quick := c.watch(), c.watch()
	chunk := make([]task.Info, watchBacklog/2)
	for range 3 {
		for _, w := range []*Watch{slow, quick} {
			c.tasks(application.TasksChanged{Watch: w.id, Tasks: chunk})
		}
		if got, err := quick.Next(t.Context()); err != nil || len(got) != len(chunk) {
			t.Fatalf("the quick one got %d, %v", len(got), err)
		}
	}
	<-slow.Failed()
	if !errors.Is(slow.Err(), ErrSlow) {
		t.Errorf("the slow one ended with %v", slow.Err())
	}
	if quick.Err() != nil {
		t.Errorf("the quick one ended with %v", quick.Err())
	}
}

// Whoever waits when the application ends is told so, and so is whoever comes later.
func TestEndTellsAllWhoWait(t *testing.T) {
	c := newClients()
	_, answer := c.expect(nil)
	watch := c.watch()
	c.closeAll(ErrClosed)
	if _, ok := <-answer; ok {
		t.Error("an answer came")
	}
	if _, err := watch.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("the watch ended with %v", err)
	}
	if _, late := c.expect(nil); late != nil {
		if _, ok := <-late; ok {
			t.Error("a late answer came")
		}
	}
	if _, err := c.watch().Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a late watch ended with %v", err)
	}
}

// Who waits for an application is told whether that was deleted or the daemon ends.
func TestEndSaysWhoEnded(t *testing.T) {
	for cause, want := range map[error]error{ErrClosed: ErrClosed, errors.New("over"): ErrStopped} {
		ctx, stop := context.WithCancelCause(t.Context())
		stop(cause)
		r := newRunner(application.Config{Namespace: "default", ID: "app"}, Carriers{}, func() snapshot.Instant { return 1 }, slog.New(slog.DiscardHandler))
		if err := r.run(ctx); !errors.Is(err, cause) {
			t.Errorf("it ended with %v", err)
		}
		if _, err := r.Fresh(t.Context()); !errors.Is(err, want) {
			t.Errorf("after %v a status is refused with %v", cause, err)
		}
		_, err := r.Call(t.Context(), func(request uint64) application.Event { return application.ListTasks{Request: request} })
		if !errors.Is(err, want) {
			t.Errorf("after %v a call is refused with %v", cause, err)
		}
	}
}

// The fresh status holds all that was posted before it was asked for.
func TestFreshHoldsWhatWasPosted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	r := newRunner(application.Config{
		Namespace: "default", ID: "app", Incarnation: 1, Batch: time.Hour, Resync: time.Hour, RetainTasks: 10,
		Profiles: []application.Profile{{ID: 1, Name: "p", Slots: 1, IdleTimeout: time.Hour, CreationTimeout: time.Hour}},
	}, Carriers{Pods: func(Key, ...application.Effect) {}, Sessions: func(Key, application.Effect) {}},
		func() snapshot.Instant { return snapshot.Instant(time.Since(began)) + 1 }, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = r.run(ctx) })
	r.Post(application.PodsListed{Version: 1})
	for id := snapshot.ID(1); id <= 200; id++ {
		name := fmt.Sprint("app-i1-exec-", id)
		r.Post(application.PodObserved{Pod: snapshot.Observation{ID: id, Phase: snapshot.Running, Name: name, UID: name, Version: 1 + snapshot.Version(id)}})
		status, err := r.Fresh(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := status.Executors.Executor(id); !ok {
			t.Fatalf("executor %d was posted before, and is not there", id)
		}
	}
}
