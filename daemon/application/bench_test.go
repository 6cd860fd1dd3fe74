package application_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// bigWorld is an application with a number of executors, all of them registered and idle.
func bigWorld(b *testing.B, executors uint32) *world {
	b.Helper()
	cfg := plainConfig()
	cfg.Profiles[0].Max, cfg.Profiles[0].BatchSize = executors, executors
	cfg.Failures.Threshold = 0
	w := newWorld(cfg)
	w.list()
	w.advance(time.Second)
	w.target(executors)
	for id := snapshot.ID(1); id <= snapshot.ID(executors); id++ {
		w.start(id)
	}
	w.advance(time.Second)
	if got := w.app.Snapshot().Total().Registered; got != executors {
		b.Fatalf("%d executors are registered, want %d", got, executors)
	}
	w.decide = func(application.AskPolicy) (application.Decided, bool) { return application.Decided{}, false }
	return w
}

// One pod event costs the same whatever the size of the fleet. Every twentieth is followed by a pass, as in a burst, whose questions are answered
// without a policy: encoding a view and deciding are measured where they happen.
func BenchmarkPodEvent(b *testing.B) {
	for _, executors := range []uint32{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("executors=%d", executors), func(b *testing.B) {
			w := bigWorld(b, executors)
			took := make([]time.Duration, 0, b.N)
			id := snapshot.ID(0)
			for i := 0; b.Loop(); i++ {
				id = id%snapshot.ID(executors) + 1
				pod := *w.pods[id]
				pod.Version = w.next()
				pod.Wait = snapshot.Wait(i / int(executors) % 2) // another one in each round
				began := time.Now()
				effects := w.app.Step(w.now, application.PodObserved{Pod: pod})
				if i%20 == 0 {
					answerAll(w, append(effects, w.app.Step(w.now, application.TimerFired{Timer: application.TimerAsk})...))
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// answerAll answers questions with nothing to do.
func answerAll(w *world, effects []application.Effect) {
	for len(effects) > 0 {
		ask, ok := effects[0].(application.AskPolicy)
		effects = effects[1:]
		if ok {
			effects = append(effects, w.app.Step(w.now, application.Decided{Number: ask.Number, Policy: "none", By: "native:none"})...)
		}
	}
}

// One task: submitted, given out, reported as done and acknowledged.
func BenchmarkTask(b *testing.B) {
	for _, executors := range []uint32{6, 1000} {
		b.Run(fmt.Sprintf("executors=%d", executors), func(b *testing.B) {
			w := bigWorld(b, executors)
			command := []string{"true"}
			for i := 0; b.Loop(); i++ {
				spec := &task.Spec{Key: fmt.Sprint(i), Command: command}
				for _, effect := range w.app.Step(w.now, application.Submit{Request: 1, Tasks: []*task.Spec{spec}}) {
					launch, ok := effect.(application.LaunchTasks)
					if !ok {
						continue
					}
					report := task.Report{Ref: launch.Launches[0].Ref, Outcome: task.OutcomeSucceeded}
					w.app.Step(w.now, application.Reported{Executor: launch.Executor, Session: launch.Session, Reports: []task.Report{report}})
				}
			}
		})
	}
}
