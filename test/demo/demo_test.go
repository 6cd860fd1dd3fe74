package main

import (
	"testing"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// The bar is as wide as asked, whatever the numbers.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		ended, tasks int
		want         string
	}{
		{0, 0, "[....] 0/0 tasks"}, {0, 9, "[....] 0/9 tasks"}, {5, 9, "[##..] 5/9 tasks"}, {9, 9, "[####] 9/9 tasks"},
	} {
		if got := bar(c.ended, c.tasks, 4); got != c.want {
			t.Errorf("bar(%d, %d) is %q, want %q", c.ended, c.tasks, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	sorted := []time.Duration{1 * time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond}
	for q, want := range map[float64]time.Duration{0: 1 * time.Millisecond, 0.5: 3 * time.Millisecond, 1: 4 * time.Millisecond} {
		if got := quantile(sorted, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("the quantile of nothing is something")
	}
}

// Everything that the demo is to show is held against what happened; what is missing is named.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	good := func() *demo {
		return &demo{tasks: 1200, killed: 1, elastic: "sha256:e", identical: true, final: &apiv1.Application{Status: &apiv1.ApplicationStatus{
			Profiles: []*apiv1.ProfileStatus{{Peak: executors}},
			Tasks:    &apiv1.TaskCounts{Succeeded: 1200, Retried: 1},
			Policy:   &apiv1.PolicyStatus{Swaps: 1, Decisions: []*apiv1.DecisionCount{{Digest: "sha256:e", Count: 1}}},
		}}}
	}
	if err := good().check(); err != nil {
		t.Fatalf("a good run is refused: %v", err)
	}
	for name, spoil := range map[string]func(*demo){
		"a task is missing":   func(d *demo) { d.final.Status.Tasks.Succeeded-- },
		"too few executors":   func(d *demo) { d.final.Status.Profiles[0].Peak-- },
		"too many executors":  func(d *demo) { d.final.Status.Profiles[0].Peak++ },
		"nobody was killed":   func(d *demo) { d.killed = 0 },
		"no swap":             func(d *demo) { d.final.Status.Policy.Swaps = 0 },
		"no decision":         func(d *demo) { d.elastic = "sha256:f" },
		"nothing was retried": func(d *demo) { d.final.Status.Tasks.Retried = 0 },
		"not compared":        func(d *demo) { d.identical = false },
	} {
		d := good()
		spoil(d)
		if d.check() == nil {
			t.Errorf("%s, and the check passes", name)
		}
	}
}
