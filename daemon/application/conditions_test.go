package application_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Whatever happens, the conditions agree with each other and with the counts beside them: who reads one of them is not told the contrary by another.
func TestConditionsAgree(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		if rapid.Bool().Draw(t, "listed") {
			u.list()
		}
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			u.do()
			seen[u.agree(t)]++
		}
		if rapid.Bool().Draw(t, "calm") {
			u.calm()
			u.politely()
			seen[u.agree(t)]++
		}
		if rapid.Bool().Draw(t, "stop") {
			u.step(application.Stop{Request: 9, KeepExecutors: rapid.Bool().Draw(t, "keep")})
			seen[u.agree(t)]++
		}
	})
	t.Logf("reasons of Progressing: %v", seen)
}

// agree checks the conditions of this moment and returns the reason of Progressing.
func (u *unruly) agree(t *rapid.T) string {
	t.Helper()
	s := u.app.Status(u.now)
	ready, progressing, limited := s.Conditions[0], s.Conditions[1], s.Conditions[2]
	if ready.Type != application.Ready || progressing.Type != application.Progressing || limited.Type != application.Limited {
		t.Fatalf("conditions %+v", s.Conditions)
	}
	missing := false
	for _, p := range u.cfg.Profiles {
		missing = missing || s.Executors.Counts(p.ID).Registered < u.wanted(p)
	}
	if want := !missing && !s.Stopped; ready.True != want {
		t.Fatalf("ready is %v, and registered are as many as wanted: %v\n%+v", ready.True, want, s.Conditions)
	}
	if !ready.True && !s.Stopped && !progressing.True && !limited.True {
		t.Fatalf("not ready, and nothing says why: %+v", s.Conditions)
	}
	moving := false
	for e := range s.Executors.All() {
		moving = moving || e.Starting() || e.Phase == snapshot.Terminating || e.Phase == snapshot.Running && !e.Load.Registered
	}
	tasks := s.Tasks.Queued + s.Tasks.Launched + s.Tasks.Running
	if settled := progressing.Reason == "Settled"; settled && (progressing.True || moving || tasks > 0 || missing && !s.Stopped) {
		t.Fatalf("settled, and yet: moving %v, tasks %d, missing %v\n%+v", moving, tasks, missing, s.Conditions)
	}
	if moving && !progressing.True {
		t.Fatalf("executors come or go, and: %+v", progressing)
	}
	return progressing.Reason
}
