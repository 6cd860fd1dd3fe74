package lifecycle

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Budget bounds how fast executors that never worked are replaced.
type Budget struct {
	Threshold uint32        // failures within Window that begin the back-off; 0: there is none
	Window    time.Duration // 0: failures are never too old
	Initial   time.Duration // first delay; it doubles with each request
	Max       time.Duration // the longest delay
}

// Backoff slows down the requests of one profile while its executors end before they ever work.
//
//	                    Threshold failures within Window
//	Normal: any number ─────────────────────────────────► backing off: one request, then none for twice as long
//	            ▲                                                          │
//	            └─────────── an executor requested in there works ─────────┘
//
// An executor is followed from Requested to Started, Failed or Withdrawn, and counts once.
type Backoff struct {
	budget   Budget
	open     map[snapshot.ID]bool // followed executors; true: requested while backing off
	failures []snapshot.Instant   // the newest, at most Threshold, ascending
	backing  bool
	since    snapshot.Instant // the back-off's begin, or its newest request
	requests uint             // while backing off
}

// NewBackoff returns a back-off in its normal state.
func NewBackoff(b Budget) *Backoff { return &Backoff{budget: b, open: make(map[snapshot.ID]bool)} }

// Configure changes the budget. A back-off that goes on goes on.
func (b *Backoff) Configure(budget Budget) { b.budget = budget }

// Room is how many executors may be requested now: all, one, or none.
func (b *Backoff) Room(now snapshot.Instant) uint32 {
	switch until, backing := b.Until(); {
	case !backing:
		return math.MaxUint32
	case now < until:
		return 0
	}
	return 1
}

// Until is when the next executor may be requested; false if there is no back-off.
func (b *Backoff) Until() (snapshot.Instant, bool) {
	if !b.backing {
		return 0, false
	}
	return b.since.Add(b.delay()), true
}

// Requested says that an executor was asked for.
func (b *Backoff) Requested(now snapshot.Instant, id snapshot.ID) {
	b.open[id] = b.backing
	if b.backing {
		b.since = now
		b.requests++
	}
}

// Started says that an executor works: it registered. It reports true if that ends the back-off.
func (b *Backoff) Started(id snapshot.ID) bool {
	probe := b.open[id]
	delete(b.open, id)
	if !probe || !b.backing {
		return false
	}
	b.backing, b.failures = false, nil
	for other := range b.open {
		b.open[other] = false // they belong to a back-off that is over
	}
	return true
}

// Failed says that an executor ended without ever having worked, or could not be created. It reports true if that begins a back-off.
func (b *Backoff) Failed(now snapshot.Instant, id snapshot.ID) bool {
	if _, followed := b.open[id]; !followed {
		return false
	}
	delete(b.open, id)
	if b.budget.Threshold == 0 {
		return false
	}
	b.failures = append(b.failures, now)
	if excess := len(b.failures) - int(b.budget.Threshold); excess > 0 {
		b.failures = slices.Delete(b.failures, 0, excess)
	}
	if b.backing || b.Failures(now) < b.budget.Threshold {
		return false
	}
	b.backing, b.since, b.requests = true, now, 0
	return true
}

// Withdrawn says that an executor is not followed any more: it was let go before it worked.
func (b *Backoff) Withdrawn(id snapshot.ID) { delete(b.open, id) }

// Failures is how many executors failed lately, at most the threshold.
func (b *Backoff) Failures(now snapshot.Instant) uint32 {
	n := uint32(0)
	for _, at := range b.failures {
		if b.budget.Window == 0 || now.Sub(at) <= b.budget.Window {
			n++
		}
	}
	return n
}

// Describe says how the back-off stands, for people.
func (b *Backoff) Describe(now snapshot.Instant) string {
	if !b.backing {
		return fmt.Sprintf("normal, %d of %d start-up failures that begin a back-off", b.Failures(now), b.budget.Threshold)
	}
	until, _ := b.Until()
	return fmt.Sprintf("executors end before they work: one more is tried in %v; %d tried since this began", snapshot.Rounded(max(until.Sub(now), 0)), b.requests)
}

func (b *Backoff) delay() time.Duration { return doubled(b.budget.Initial, b.requests, b.budget.Max) }
