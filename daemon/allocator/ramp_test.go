package allocator

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// t0 is not 0, which means "never".
const t0 = snapshot.Instant(time.Second)

func dynamicProfile(least, most, slots uint32, ratio float64) Profile {
	return Profile{Min: least, Max: most, Slots: slots, Dynamic: Dynamic{Enabled: true, Backlog: time.Second, Sustained: time.Second, Ratio: ratio}}
}

// A steady backlog grows the target by one, two, four... each second, as Spark's dynamic allocation does, up to the need or the maximum.
func TestRampDoubles(t *testing.T) {
	for _, test := range []struct {
		name    string
		profile Profile
		from    uint32
		tasks   uint32
		want    []uint32
	}{
		{"up to the maximum", dynamicProfile(1, 10, 1, 1), 1, 1000, []uint32{1, 2, 4, 8, 10, 10}},
		{"up to the need", dynamicProfile(0, 10, 1, 1), 0, 5, []uint32{0, 1, 3, 5, 5}},
		{"without a bound", dynamicProfile(0, 0, 1, 1), 0, 100_000, []uint32{0, 1, 3, 7, 15, 31}},
		{"from the minimum", dynamicProfile(3, 10, 1, 1), 3, 1000, []uint32{3, 4, 6, 10, 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r ramp
			target, got := test.from, []uint32(nil)
			for i := range test.want {
				now := t0.Add(time.Duration(i) * time.Second)
				target = r.step(now, &test.profile, task.Demand{Queued: test.tasks}, target, 0)
				got = append(got, target)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

// The need is what runs all tasks at the wanted ratio of tasks to slots: the figures are those of Spark's suite.
func TestNeedFollowsTheRatio(t *testing.T) {
	for _, test := range []struct {
		slots uint32
		ratio float64
		want  uint32
	}{{1, 0.5, 10}, {1, 1.0 / 3, 7}, {1, 0.385, 8}, {2, 1.0 / 3, 4}, {1, 1, 20}, {4, 1, 5}} {
		p := dynamicProfile(0, 0, test.slots, test.ratio)
		if got := p.need(task.Demand{Queued: 15, Held: 5}); got != test.want {
			t.Errorf("20 tasks, %d slots, ratio %v: need %d, want %d", test.slots, test.ratio, got, test.want)
		}
	}
}

// The initial executors stay until the first task has come; from then on what is not needed is taken back at once.
func TestRampComesDown(t *testing.T) {
	p := dynamicProfile(1, 10, 1, 1)
	var r ramp
	if got := r.step(t0, &p, task.Demand{}, 6, 6); got != 6 {
		t.Errorf("before the first task: target %d, want the initial 6", got)
	}
	if got := r.step(t0, &p, task.Demand{Queued: 1, Held: 2}, 6, 6); got != 3 {
		t.Errorf("with three tasks: target %d, want 3", got)
	}
	if got := r.step(t0, &p, task.Demand{}, 3, 3); got != 1 {
		t.Errorf("without tasks: target %d, want the minimum", got)
	}
	if r.at != 0 {
		t.Errorf("without tasks the next addition is at %d, want none", r.at)
	}
}

// Whatever the backlog does, the target stays between minimum and maximum once it is there, never exceeds the need by growing, and grows only
// while tasks wait and no sooner than the backlog's time.
func TestRampKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := dynamicProfile(rapid.Uint32Range(0, 5).Draw(t, "min"), rapid.Uint32Range(5, 40).Draw(t, "max"), rapid.Uint32Range(1, 4).Draw(t, "slots"), 1)
		var r ramp
		now, target := t0, p.Min
		waiting := snapshot.Instant(0) // since when tasks wait
		for range 60 {
			d := task.Demand{Queued: rapid.SampledFrom([]uint32{0, 0, 1, 50, math.MaxUint32}).Draw(t, "queued"), Held: rapid.Uint32Range(0, 20).Draw(t, "held")}
			if d.Queued == 0 {
				waiting = 0
			} else if waiting == 0 {
				waiting = now
			}
			next := r.step(now, &p, d, target, rapid.Uint32Range(0, 40).Draw(t, "registered"))
			if next < p.Min || next > p.Max {
				t.Fatalf("target %d, bounds %d to %d", next, p.Min, p.Max)
			}
			if next > target && (d.Queued == 0 || now.Sub(waiting) < p.Dynamic.Backlog || next > max(p.need(d), p.Min)) {
				t.Fatalf("target grew from %d to %d with demand %+v, waiting since %v of %v", target, next, d, waiting, now)
			}
			target = next
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
		}
	})
}
