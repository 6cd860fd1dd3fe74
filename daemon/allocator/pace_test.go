package allocator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

func newPace() *pace { return &pace{batch: 100 * time.Millisecond, resync: 10 * time.Second} }

func ms(n int) snapshot.Instant { return t0.Add(time.Duration(n) * time.Millisecond) }

// An urgent change is asked about at once, a second one within the batch not before its end, another change after the batch.
func TestUrgentChangesDoNotWait(t *testing.T) {
	p := newPace()
	p.note(ms(0), hostabi.TriggerTargets, true, false)
	if !p.ripe || p.due != ms(0) {
		t.Fatalf("the first urgent change: ripe=%t due=%d, want at once", p.ripe, p.due)
	}
	if why := p.begin(ms(0)); why != hostabi.TriggerTargets {
		t.Errorf("the pass begins because of %v, want targets", why)
	}
	p.end(ms(10), 0)
	p.note(ms(50), hostabi.TriggerTargets, true, false)
	if p.ripe || p.due != ms(100) {
		t.Errorf("an urgent change within the batch: ripe=%t due=%d, want %d", p.ripe, p.due, ms(100))
	}
	p.force(ms(100), false)
	p.begin(ms(100))
	p.end(ms(100), 0)
	p.note(ms(500), hostabi.TriggerPods, false, false)
	p.note(ms(520), hostabi.TriggerPods, false, false)
	if p.ripe || p.due != ms(600) {
		t.Errorf("changes that gather: ripe=%t due=%d, want the first one's %d", p.ripe, p.due, ms(600))
	}
}

// What changes while a pass is going on is asked about a batch after it.
func TestChangesDuringAPassMakeAnotherOne(t *testing.T) {
	p := newPace()
	p.force(ms(0), false)
	p.begin(ms(0))
	p.note(ms(10), hostabi.TriggerPods, true, true)
	p.hold()
	p.note(ms(20), hostabi.TriggerDemand, true, false)
	p.resume()
	if p.ripe || p.due != 0 {
		t.Errorf("during the pass: ripe=%t due=%d, want neither", p.ripe, p.due)
	}
	p.end(ms(30), 0)
	if p.due != ms(130) {
		t.Errorf("after the pass: due %d, want %d", p.due, ms(130))
	}
	if why := p.begin(ms(130)); why != hostabi.TriggerDemand {
		t.Errorf("the next pass begins because of %v, want the most telling: demand", why)
	}
}

// A policy is called again when it wishes, but not sooner than the batch and not later than the resync.
func TestWishesAreFollowedWithinBounds(t *testing.T) {
	for _, test := range []struct {
		wish, want int
		text       string
	}{{0, 10_000, "no wish"}, {3000, 3000, "a wish"}, {1, 100, "too soon"}, {60_000, 10_000, "too late"}} {
		p := newPace()
		p.force(ms(0), false)
		p.begin(ms(0))
		wish := snapshot.Instant(0)
		if test.wish > 0 {
			wish = ms(test.wish)
		}
		if p.end(ms(0), wish); p.due != ms(test.want) {
			t.Errorf("%s: due %v after the pass, want %v", test.text, p.due.Sub(ms(0)), ms(test.want).Sub(ms(0)))
		}
		if why := p.begin(p.due); why != hostabi.TriggerTimer {
			t.Errorf("%s: the pass begins because of %v, want timer", test.text, why)
		}
	}
}

// Whatever changes when, no two passes begin within a batch, unless a timer that nobody set is fired, and no change waits for longer than two.
func TestPassesKeepTheirDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := newPace(), t0
		last, changed, flying := snapshot.Instant(0), snapshot.Instant(0), false
		for range 100 {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				p.note(now, hostabi.TriggerPods, rapid.Bool().Draw(t, "urgent"), flying)
				if changed == 0 {
					changed = now
				}
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(1, 150).Draw(t, "ms")) * time.Millisecond)
				if !flying && p.due != 0 && p.due <= now {
					now = p.due
					p.force(now, false)
				}
			case 2:
				if flying {
					p.end(now, now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "wish"))*time.Millisecond))
					flying = false
				}
			}
			if !flying && p.ripe {
				if last != 0 && now.Sub(last) < p.batch {
					t.Fatalf("a pass begins %v after the last one", now.Sub(last))
				}
				p.begin(now)
				last, changed, flying = now, 0, true
			}
			if !flying && changed != 0 && (p.due == 0 || p.due > now.Add(p.batch)) {
				t.Fatalf("a change is not asked about before %v", p.due)
			}
		}
	})
}

// Of creations and releases those of the last minute count, and no others.
func TestChurnForgetsAfterAMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type spent struct {
			at snapshot.Instant
			n  uint32
		}
		var c churn
		var all []spent
		now := snapshot.Instant(0)
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			n := rapid.Uint32Range(0, 9).Draw(t, "n")
			c.add(now, n)
			all = append(all, spent{now, n})
			want := uint64(0)
			for _, s := range all {
				if int64(now)/int64(time.Second)-int64(s.at)/int64(time.Second) < churnSeconds {
					want += uint64(s.n)
				}
			}
			if got := c.used(now); got != want {
				t.Fatalf("used %d, want %d", got, want)
			}
		}
	})
}
