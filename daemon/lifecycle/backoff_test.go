package lifecycle_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

var budget = lifecycle.Budget{Threshold: 2, Window: 10 * time.Minute, Initial: 10 * time.Second, Max: 2 * time.Minute}

func at(d time.Duration) snapshot.Instant { return snapshot.Instant(d) }

// request asks for executors at a moment.
func request(b *lifecycle.Backoff, now snapshot.Instant, ids ...snapshot.ID) {
	for _, id := range ids {
		b.Requested(now, id)
	}
}

// backing is a back-off that began at 5 s, with executor 3 asked for before.
func backing() *lifecycle.Backoff {
	b := lifecycle.NewBackoff(budget)
	request(b, 0, 1, 2, 3)
	b.Failed(0, 1)
	b.Failed(at(5*time.Second), 2)
	return b
}

// As long as executors work nothing is slowed down.
func TestBackoffNormal(t *testing.T) {
	b := lifecycle.NewBackoff(budget)
	for id := range snapshot.ID(10) {
		b.Requested(0, id+1)
		if b.Started(id + 1) {
			t.Error("a back-off ended that never began")
		}
	}
	if b.Room(0) != math.MaxUint32 || b.Failures(0) != 0 {
		t.Errorf("room %d, failures %d", b.Room(0), b.Failures(0))
	}
	if got := b.Describe(0); got != "normal, 0 of 2 start-up failures that begin a back-off" {
		t.Error(got)
	}
}

// Who worked, is not followed, or failed before does not count.
func TestBackoffCountsOnce(t *testing.T) {
	b := lifecycle.NewBackoff(budget)
	request(b, 0, 1, 2, 3)
	b.Started(1)
	b.Withdrawn(3)
	for _, id := range []snapshot.ID{1, 2, 2, 3, 4} {
		if b.Failed(0, id) {
			t.Errorf("the failure of %d began a back-off", id)
		}
	}
	if b.Failures(0) != 1 {
		t.Errorf("%d failures, want 1", b.Failures(0))
	}
}

// Two failures within the window begin a back-off, which is told once.
func TestBackoffBegins(t *testing.T) {
	b := lifecycle.NewBackoff(budget)
	request(b, 0, 1, 2, 3)
	if b.Failed(0, 1) || !b.Failed(at(5*time.Second), 2) || b.Failed(at(6*time.Second), 3) {
		t.Error("not begun by the second one")
	}
	if until, ok := b.Until(); !ok || until != at(15*time.Second) {
		t.Errorf("until %v, %v", until, ok)
	}
	if got := b.Describe(at(5 * time.Second)); got != "executors end before they work: one more is tried in 10s; 0 tried since this began" {
		t.Error(got)
	}
}

// Failures older than the window do not count.
func TestBackoffWindow(t *testing.T) {
	b := lifecycle.NewBackoff(lifecycle.Budget{Threshold: 3, Window: time.Minute, Initial: 10 * time.Second, Max: 2 * time.Minute})
	request(b, 0, 1, 2, 3)
	b.Failed(0, 1)
	b.Failed(at(20*time.Second), 2)
	for second, want := range map[int]uint32{20: 2, 60: 2, 61: 1, 80: 1, 81: 0} {
		if got := b.Failures(at(time.Duration(second) * time.Second)); got != want {
			t.Errorf("at %d s: %d failures, want %d", second, got, want)
		}
	}
	if b.Failed(at(61*time.Second), 3) {
		t.Error("an old failure counted")
	}
}

// The delay doubles with each request up to the longest; one executor is allowed when it has passed, and none a moment before.
func TestBackoffDelays(t *testing.T) {
	b := backing()
	now := at(5 * time.Second)
	id := snapshot.ID(10)
	var delays []time.Duration
	for range 7 {
		until, _ := b.Until()
		delays = append(delays, until.Sub(now))
		if b.Room(until-1) != 0 || b.Room(until) != 1 {
			t.Errorf("room %d before, %d then", b.Room(until-1), b.Room(until))
		}
		id++
		now = until
		b.Requested(now, id)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute}
	if !slices.Equal(want, delays) {
		t.Errorf("delays %v, want %v", delays, want)
	}
}

// However many were asked for, the delay is more than nothing, never shorter than the one before, and at most the longest.
func TestBackoffDelayIsBounded(t *testing.T) {
	for _, limit := range []time.Duration{2 * time.Minute, math.MaxInt64, 0} {
		b := lifecycle.NewBackoff(lifecycle.Budget{Threshold: 1, Initial: 10 * time.Second, Max: limit})
		b.Requested(0, 1)
		b.Failed(0, 1)
		before := at(1)
		for id := range snapshot.ID(2048) {
			b.Requested(0, id+2)
			until, ok := b.Until()
			if !ok || until < before || time.Duration(until) > max(limit, 1) {
				t.Fatalf("after %d requests: %v, %v, and before %v", id+1, until, ok, before)
			}
			before = until
		}
	}
}

// Only an executor that was asked for during the back-off ends it, and ends it wholly.
func TestBackoffEnds(t *testing.T) {
	b := backing()
	if b.Started(3) || b.Room(at(5*time.Second)) != 0 {
		t.Error("one asked for before ended it")
	}
	now := at(15 * time.Second)
	request(b, now, 10, 11)
	if !b.Started(10) || b.Started(10) || b.Started(11) {
		t.Error("not ended once by one asked for in it")
	}
	if b.Failures(now) != 0 || b.Room(now) != math.MaxUint32 {
		t.Errorf("failures %d, room %d", b.Failures(now), b.Room(now))
	}
}

// A probe of a back-off that is over does not end the next one.
func TestBackoffProbeOfAnother(t *testing.T) {
	b := backing()
	now := at(15 * time.Second)
	request(b, now, 10, 11)
	b.Started(10)
	request(b, now, 20, 21)
	b.Failed(now, 20)
	if !b.Failed(now, 21) || b.Started(11) {
		t.Error("the second back-off did not begin, or was ended by a probe of the first")
	}
}

// Each back-off begins with the first delay again.
func TestBackoffCycles(t *testing.T) {
	b := lifecycle.NewBackoff(budget)
	now, id := at(0), snapshot.ID(0)
	for range 3 {
		request(b, now, id+1, id+2)
		b.Failed(now, id+1)
		if !b.Failed(now, id+2) {
			t.Fatal("it did not begin")
		}
		until, _ := b.Until()
		if until.Sub(now) != budget.Initial {
			t.Errorf("first delay %v", until.Sub(now))
		}
		now, id = until, id+3
		b.Requested(now, id)
		if !b.Started(id) {
			t.Fatal("it did not end")
		}
	}
}

// Of ten executors five fail and five work: that is a back-off.
func TestBackoffHalf(t *testing.T) {
	b := lifecycle.NewBackoff(budget)
	for id := range snapshot.ID(10) {
		b.Requested(0, id)
	}
	for id := range snapshot.ID(5) {
		b.Failed(0, 2*id)
		b.Started(2*id + 1)
	}
	if b.Room(0) != 0 {
		t.Error("there is none")
	}
}

// Without a threshold there is no back-off, and a changed budget holds at once.
func TestBackoffConfigure(t *testing.T) {
	b := lifecycle.NewBackoff(lifecycle.Budget{})
	request(b, 0, 1, 2, 3, 4)
	if b.Failed(0, 1) || b.Failed(0, 2) || b.Room(0) != math.MaxUint32 {
		t.Error("there is one")
	}
	b.Configure(budget)
	b.Failed(0, 3)
	if !b.Failed(0, 4) {
		t.Error("there is none")
	}
}

// However executors start and fail, fewer failures than the threshold are remembered, and in a back-off at most one executor fits into a delay.
func TestBackoffBoundsRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := lifecycle.NewBackoff(budget)
		now, id := at(0), snapshot.ID(0)
		failed := 0 // in a row, without one that worked
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "later")))
			if b.Room(now) == 0 {
				continue
			}
			id++
			b.Requested(now, id)
			if rapid.IntRange(0, 9).Draw(t, "works") == 0 {
				b.Started(id)
				failed = 0
				continue
			}
			b.Failed(now, id)
			failed++
			if b.Failures(now) > budget.Threshold {
				t.Fatalf("%d failures are remembered", b.Failures(now))
			}
			if until, ok := b.Until(); failed >= 2+3 && now < at(budget.Window) && (!ok || until.Sub(now) < 40*time.Second) {
				t.Fatalf("%d failed in a row, and the next is asked for after %v, %v", failed, until.Sub(now), ok)
			}
		}
	})
}
