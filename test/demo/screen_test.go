package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

func fleetOf(registered, busy, swaps uint32, policy string) *apiv1.ApplicationStatus {
	return &apiv1.ApplicationStatus{
		Mode: "follow", Policy: &apiv1.PolicyStatus{Policy: policy, Swaps: swaps},
		Profiles: []*apiv1.ProfileStatus{{Target: registered, Running: registered, Registered: registered, Busy: busy}},
	}
}

// Where there is no terminal, there is a line every now and then, none before somebody decides, none twice, and one at the end that calls nobody
// busy.
func TestPlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out)
		s.show(0, 9, fleetOf(0, 0, 0, ""))
		for ended := range 4 {
			s.show(ended/2, 9, fleetOf(1, 1, 0, "direct"))
			time.Sleep(plainEvery / 2) // every other is too soon
		}
		for range 10 {
			s.show(1, 9, fleetOf(1, 1, 0, "direct"))
			time.Sleep(plainEvery)
		}
		s.show(8, 9, fleetOf(1, 1, 1, "elastic"))
		s.done(9, 9)
		s.done(9, 9)
		want := []string{
			"0/9 tasks; executors: target 1, requested 0, pending 0, running 1, registered 1, busy 1; policy direct, follow, 0 swaps",
			"1/9 tasks; executors: target 1, requested 0, pending 0, running 1, registered 1, busy 1; policy direct, follow, 0 swaps",
			"8/9 tasks; executors: target 1, requested 0, pending 0, running 1, registered 1, busy 1; policy elastic, follow, 1 swap",
			"9/9 tasks; executors: target 1, requested 0, pending 0, running 1, registered 1; policy elastic, follow, 1 swap",
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A terminal shows how it is at once, over what was there, and at the end how it ended.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.live = true
	s.done(0, 9) // nothing was seen
	s.show(1, 9, fleetOf(1, 1, 0, "direct"))
	s.show(2, 9, fleetOf(1, 1, 0, "direct"))
	s.done(9, 9)
	if n := strings.Count(out.String(), "\x1b[2A"); n != 2 || !strings.Contains(out.String(), "9/9 tasks") {
		t.Errorf("drew over what was there %d times, want 2, and the end: %q", n, out.String())
	}
	if last := out.String()[strings.LastIndex(out.String(), "9/9 tasks"):]; strings.Contains(last, "busy") {
		t.Errorf("the end calls executors busy: %q", last)
	}
}
