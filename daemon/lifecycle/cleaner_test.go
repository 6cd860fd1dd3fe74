package lifecycle_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

var retry = lifecycle.Retry{Interval: 10 * time.Second, Max: time.Minute}

// A deletion is asked for at once, again after ever longer intervals, and no more when the object is gone.
func TestCleanerRetries(t *testing.T) {
	c := lifecycle.NewCleaner(retry)
	c.Add(0, 1)
	var times []time.Duration
	for range 6 {
		next, ok := c.Next()
		if !ok {
			t.Fatal("it gave up")
		}
		if early := c.Due(next - 1); early != nil {
			t.Errorf("%v too early", early)
		}
		if due := c.Due(next); !slices.Equal(due, []snapshot.ID{1}) {
			t.Errorf("due: %v", due)
		}
		c.Add(next, 1) // seen again, as a watch does
		times = append(times, time.Duration(next))
	}
	want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 130 * time.Second, 190 * time.Second}
	if !slices.Equal(want, times) {
		t.Errorf("at %v, want %v", times, want)
	}
	if n := c.Times(1); n != 6 {
		t.Errorf("asked for %d times, want 6", n)
	}
	if !c.Gone(1) || c.Gone(1) || c.Len() != 0 || c.Times(1) != 0 {
		t.Error("it is not forgotten")
	}
	if next, ok := c.Next(); ok {
		t.Errorf("next %v for nobody", next)
	}
}

// Whatever comes and goes, each object is asked for at most once in an interval, in order, and only while it is there.
func TestCleanerAsksOncePerInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := lifecycle.NewCleaner(retry)
		now := snapshot.Instant(0)
		last := make(map[snapshot.ID]snapshot.Instant) // -1: not asked for yet
		id := rapid.Custom(func(t *rapid.T) snapshot.ID { return snapshot.ID(rapid.IntRange(1, 20).Draw(t, "executor")) })
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id := id.Draw(t, "id")
				c.Add(now, id)
				if _, ok := last[id]; !ok {
					last[id] = -1
				}
			},
			"gone": func(t *rapid.T) {
				id := id.Draw(t, "id")
				_, known := last[id]
				if c.Gone(id) != known {
					t.Fatalf("executor %d was known: %v", id, !known)
				}
				delete(last, id)
			},
			"due": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "later")))
				due := c.Due(now)
				if !slices.IsSorted(due) || len(slices.Compact(slices.Clone(due))) != len(due) {
					t.Fatalf("not in order: %v", due)
				}
				for _, id := range due {
					if before, ok := last[id]; !ok || before >= 0 && now.Sub(before) < retry.Interval {
						t.Fatalf("executor %d is asked for at %v, and was before at %v, %v", id, now, before, ok)
					}
					last[id] = now
				}
				for _, id := range slices.Sorted(maps.Keys(last)) {
					if last[id] < 0 || now.Sub(last[id]) >= retry.Max {
						t.Fatalf("executor %d is not asked for", id)
					}
				}
			},
			"": func(t *rapid.T) {
				if c.Len() != len(last) {
					t.Fatalf("%d are held, want %d", c.Len(), len(last))
				}
			},
		})
	})
}
