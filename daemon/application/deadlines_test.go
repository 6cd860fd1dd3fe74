package application_test

import (
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/task"
)

// bounded is a world with one executor that holds the task a1, which has ten seconds.
func bounded() *world {
	w := newWorld(plainConfig())
	w.list()
	w.target(1)
	w.start(1)
	w.submit("a", "", 1, 10*time.Second)
	w.take()
	return w
}

// An event that comes when a deadline is over finds it over, although the timer has not fired: a late failure is not tried again, a late wish
// to cancel changes nothing, and a watch that is opened then is shown the end once.
func TestDeadlineDoesNotWaitForItsTimer(t *testing.T) {
	ref := task.Ref{Task: 1, Attempt: 1}
	for name, ev := range map[string]application.Event{
		"a failure": application.Reported{Executor: 1, Session: 1, Reports: []task.Report{{Ref: ref, Outcome: task.OutcomeFailed}}},
		"a loss":    application.Detached{Executor: 1, Session: 1, Leaving: true},
		"a wish":    application.Cancel{Request: 9, Keys: []string{"a1"}},
		"a watch":   application.WatchTasks{Request: 9, Watch: 9},
	} {
		w := bounded()
		w.now = w.now.Add(10 * time.Second)
		w.step(ev)
		kills := 0
		for _, effect := range w.take() {
			switch e := effect.(type) {
			case application.LaunchTasks:
				t.Errorf("after %s it is tried again: %+v", name, e)
			case application.KillTasks:
				kills++
			}
		}
		if kills == 0 {
			t.Errorf("after %s: nothing is killed", name)
		}
		w.step(application.Reported{Executor: 1, Session: 1, Reports: []task.Report{{Ref: ref, Outcome: task.OutcomeKilled}}})
		if c := w.app.Status(w.now).Tasks; c.Expired != 1 || c.Cancelled+c.Failed > 0 {
			t.Errorf("after %s: %+v, want it expired", name, c)
		}
	}
}

// A watch that is opened when a deadline is over lists the end, and is not told it again; those that were open are told.
func TestWatchOpenedLate(t *testing.T) {
	w := newWorld(plainConfig())
	w.list()
	w.step(application.WatchTasks{Request: 8, Watch: 8})
	w.submit("a", "", 1, 10*time.Second)
	w.take()
	w.now = w.now.Add(10 * time.Second)
	w.step(application.WatchTasks{Request: 9, Watch: 9})
	told := map[uint64]int{}
	for _, effect := range w.take() {
		switch e := effect.(type) {
		case application.TasksChanged:
			told[e.Watch]++
		case application.Reply:
			if len(e.Tasks) != 1 || e.Tasks[0].State != task.Expired {
				t.Errorf("the new watch lists %+v", e.Tasks)
			}
		}
	}
	if told[8] != 1 || told[9] != 0 {
		t.Errorf("told %v, want the first watch alone", told)
	}
}

// The timer is set for the next deadline, and for none when no task has one.
func TestDeadlineTimer(t *testing.T) {
	w := bounded()
	if at := w.timers[application.TimerTasks]; at != w.now.Add(10*time.Second) {
		t.Errorf("the timer is set for %v, want ten seconds from %v", at, w.now)
	}
	w.step(application.TimerFired{Timer: application.TimerTasks}) // early
	if at := w.timers[application.TimerTasks]; at != w.now.Add(10*time.Second) {
		t.Errorf("after it fired early the timer is set for %v", at)
	}
	w.step(application.Cancel{Request: 9})
	if at, set := w.timers[application.TimerTasks]; set {
		t.Errorf("the task was cancelled, and the timer is set for %v", at)
	}
}
