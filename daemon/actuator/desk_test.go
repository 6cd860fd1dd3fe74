package actuator

import (
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// exact is a desk without jitter, with orders of one application, of which as many as may be are in flight.
func exact(orders int, now time.Time) (*desk, []*order) {
	d := newDesk(DefaultLimits(), func(d time.Duration) time.Duration { return d })
	d.admit("a", "batch")
	for id := range snapshot.ID(orders) {
		d.create("a", application.CreatePod{Executor: id + 1})
	}
	return d, d.start(now)
}

// Calls that were in flight together and went wrong together are one piece of news: the window is halved once, and the pause begins once.
func TestTroubleIsCountedOnce(t *testing.T) {
	now := time.Unix(0, 0)
	d, flying := exact(100, now)
	if len(flying) != 8 {
		t.Fatalf("%d in flight, want 8", len(flying))
	}
	late := now.Add(time.Second)
	for _, o := range flying {
		d.finish(late, o, result{class: cluster.Unknown}, now)
	}
	if got := d.lanes[creation].window.limit; got != 4 {
		t.Errorf("the window is %d, want 4", got)
	}
	if pause, due := d.pause(late); !due || pause != DefaultLimits().Backoff {
		t.Errorf("pause %v (%v), want %v", pause, due, DefaultLimits().Backoff)
	}
}

// Each further trouble doubles the pause and halves the window, to their bounds; one success ends the pause.
func TestPausesGrow(t *testing.T) {
	limits := DefaultLimits()
	now := time.Unix(0, 0)
	d, flying := exact(100, now)
	for i := range 10 {
		began := now
		now = now.Add(time.Second)
		for _, o := range flying {
			d.finish(now, o, result{class: cluster.Unknown}, began)
		}
		want := min(limits.Backoff<<i, limits.MaxBackoff)
		pause, _ := d.pause(now)
		if pause != want {
			t.Fatalf("pause %d is %v, want %v", i, pause, want)
		}
		if early := d.start(now.Add(pause - 1)); len(early) != 0 {
			t.Fatalf("%d calls before the pause is over", len(early))
		}
		now = now.Add(pause)
		flying = d.start(now)
		if want := max(1, 8>>(i+1)); len(flying) != want {
			t.Fatalf("%d calls after trouble %d, want %d", len(flying), i, want)
		}
	}
	news := d.finish(now, flying[0], result{class: cluster.Invalid}, now)
	if pause, _ := d.pause(now); pause != 0 || news != troubleEnded {
		t.Errorf("after an answer: pause %v, news %d, want none and the end of trouble", pause, news)
	}
}

// A pause of one application holds up no other.
func TestPausesAreOfOneApplication(t *testing.T) {
	now := time.Unix(0, 0)
	d, flying := exact(1, now)
	d.finish(now, flying[0], result{class: cluster.Unknown}, now)
	d.admit("b", "batch")
	d.create("b", application.CreatePod{Executor: 1})
	if got := d.start(now); len(got) != 1 || got[0].tenant.app != "b" {
		t.Errorf("started %v, want the order of b", got)
	}
}

// With nothing that waits there is no time at which to look again.
func TestNothingIsDue(t *testing.T) {
	now := time.Unix(0, 0)
	d, flying := exact(1, now)
	if pause, due := d.pause(now); due {
		t.Errorf("due in %v while all is in flight", pause)
	}
	d.finish(now, flying[0], result{class: cluster.Invalid}, now)
	if pause, due := d.pause(now); due {
		t.Errorf("due in %v with nothing to do", pause)
	}
}
