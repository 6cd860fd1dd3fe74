package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// without is an application that has no executors, with what the daemon says of it.
func without(conditions ...*apiv1.Condition) *apiv1.Application {
	app := of(&apiv1.ProfileStatus{})
	app.Status.Conditions = conditions
	return app
}

var (
	limited  = &apiv1.Condition{Type: "Limited", Status: true, Reason: "NothingWanted", Message: "its target is 0 (2)"}
	again    = &apiv1.Condition{Type: "Limited", Status: true, Reason: "NothingWanted", Message: "its target is 0 (1)"}
	free     = &apiv1.Condition{Type: "Limited", Reason: "NothingInTheWay", Message: "all is well"}
	underway = &apiv1.Condition{Type: "Progressing", Status: true, Reason: "Starting", Message: "one starts"}
)

// While no executor comes and tasks wait, a person is told why after some seconds, once for each reason; and the line is still there afterwards.
func TestStallIsTold(t *testing.T) {
	for _, live := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			out := &bytes.Buffer{}
			g := newProgress(out, 2, false)
			g.live = live
			g.passing = !live // a single command: elsewhere than on a terminal it has no line at all
			told := func() int { return strings.Count(out.String(), "retinue: there is no executor yet: ") }
			expect := func(when string, want int) {
				t.Helper()
				if g.tell(); told() != want {
					t.Errorf("live %t: %s it was told %d times, want %d: %q", live, when, told(), want, out)
				}
			}
			seen(g, queued, "a", "b")
			expect("before anything is known", 0)
			g.application(without(limited, underway))
			expect("at once", 0)
			time.Sleep(patientFor)
			expect("after some seconds", 1)
			if !strings.Contains(out.String(), "its target is 0 (2)\n") || live != strings.Contains(out.String(), "(2)\n\r\x1b[K[") {
				t.Errorf("live %t: wrote %q, want the reason, and on a terminal the line again", live, out)
			}
			g.application(without(again, underway))
			expect("for the same reason", 1)
			g.application(without(free, underway))
			expect("for another reason", 2)
			g.application(of(&apiv1.ProfileStatus{Registered: 1}))
			time.Sleep(patientFor)
			expect("with an executor", 2)
			g.application(without(limited))
			time.Sleep(patientFor)
			seen(g, succeeded, "a", "b")
			expect("at the end", 2)
		})
	}
}
