// Package elastic sizes each profile's fleet from its backlog: as many executors as it takes to run every queued
// and running task at once, within the bounds of the view.
//
// It promises that
//
//   - it never wants fewer executors than the floor, nor more than the ceiling, the maximum and, in mode follow,
//     the target;
//   - a fleet at most doubles in one growth interval, so that a short burst does not order a fleet for an hour;
//   - it lets go only of executors that have been idle for a while, the longest idle first, and of requests that
//     never started and are old enough.
package elastic

import (
	"slices"
	"strconv"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
)

// Policy is the policy. Its zero value, configured, is ready.
type Policy struct {
	idleMS   int64 // an executor may go once it has been idle for this long
	growthMS int64 // the interval in which a fleet at most doubles
	first    int64 // what a fleet may grow to in its first interval
	state    growth
	fleets   []sdk.Fleet
	wishes   []uint32
}

// Configure takes idle (how long an executor is idle before it may go, 30s), growth_interval (in which a fleet at
// most doubles, 1s) and first (what an empty fleet may grow to at once, 1).
func (p *Policy) Configure(s sdk.Settings) error {
	p.idleMS, p.growthMS, p.first = 30_000, 1000, 1
	return s.Decode(
		sdk.MS("idle", &p.idleMS),
		sdk.MS("growth_interval", &p.growthMS),
		sdk.Whole("first", &p.first, 1, 1<<20),
	)
}

// Allocate grows fleets towards their backlog.
func (p *Policy) Allocate(v *sdk.View, r *sdk.Result) error {
	p.fleets = sdk.Fleets(v, p.fleets)
	p.state.read(v)
	p.wishes = p.wishes[:0]
	for i := range p.fleets {
		p.wishes = append(p.wishes, p.wish(v, r, &p.fleets[i]))
	}
	sdk.Share(v, p.fleets, p.wishes)
	for i, n := range p.wishes {
		if f := &p.fleets[i]; n > 0 {
			r.Create(f.ID, n, "backlog needs "+decimal(needed(v, f))+", live "+decimal(f.Live()))
		}
	}
	p.state.write(r)
	return nil
}

// wish returns how many executors a profile should get, as far as its own bounds go.
func (p *Policy) wish(v *sdk.View, r *sdk.Result, f *sdk.Fleet) uint32 {
	missing := sdk.Minus(needed(v, f), f.Live())
	if missing == 0 {
		return 0
	}
	now := v.Decision.ElapsedMS()
	if wait := v.Profiles.BackoffUntilMS()[f.Row] - now; wait > 0 {
		r.CallWithin(wait)
		return 0
	}
	window := p.state.window(f, now, p.growthMS)
	limit := max(2*uint64(window.base), uint64(p.first), uint64(v.Profiles.Floor()[f.Row]))
	growth := sdk.Minus(uint32(min(limit, hostabi.None)), f.Live())
	if growth < missing {
		r.CallWithin(window.since + p.growthMS - now)
	}
	return min(missing, growth, sdk.Headroom(v, f))
}

// Release shrinks fleets to their backlog.
func (p *Policy) Release(v *sdk.View, r *sdk.Result) error {
	p.fleets = sdk.Fleets(v, p.fleets)
	if !slices.ContainsFunc(p.fleets, func(f sdk.Fleet) bool { return mayShrink(v, &f) }) {
		return nil
	}
	for i := range p.fleets {
		f := &p.fleets[i]
		f.Excess, f.IdleBy = sdk.Minus(f.Live(), needed(v, f)), v.Decision.ElapsedMS()-p.idleMS
	}
	sdk.Candidates(v, p.fleets)
	for i := range p.fleets {
		f := &p.fleets[i]
		reason := "backlog needs " + decimal(needed(v, f)) // one text for all, however many go
		left := f.Excess - cancel(v, r, f, f.Excess, reason+", not started")
		drain(v, r, f, left, reason+", idle for "+strconv.FormatInt(p.idleMS, 10)+" ms")
	}
	return nil
}

// mayShrink reports whether a profile has more executors than it needs, and perhaps some that may go.
func mayShrink(v *sdk.View, f *sdk.Fleet) bool {
	return f.Live() > needed(v, f) && (f.NotRunning() > 0 || v.Profiles.Idle()[f.Row] > 0)
}

// cancel withdraws up to surplus requests that are old enough and returns how many: the youngest of them first,
// as the older ones are nearer to their start.
func cancel(v *sdk.View, r *sdk.Result, f *sdk.Fleet, surplus uint32, reason string) uint32 {
	if surplus == 0 {
		return 0
	}
	ages, ids := v.Executors.CreatedAgoMS(), v.Executors.ID()
	timeout := v.Profiles.IdleTimeoutMS()[f.Row]
	cancelled := uint32(0)
	oldest := int64(-1) // of those that are too young
	for _, row := range slices.Backward(f.Unstarted) {
		switch {
		case ages[row] <= timeout:
			oldest = max(oldest, ages[row])
		case cancelled < surplus:
			r.Cancel(ids[row], reason)
			cancelled++
		}
	}
	if cancelled < surplus && oldest >= 0 {
		r.CallWithin(timeout - oldest + 1)
	}
	return cancelled
}

// drain lets up to surplus executors go that have been idle for long enough, the longest idle first, and asks to be
// called when the next one has been.
func drain(v *sdk.View, r *sdk.Result, f *sdk.Fleet, surplus uint32, reason string) {
	ids := v.Executors.ID()
	idle := f.Idle[:min(len(f.Idle), int(surplus))]
	for _, row := range idle {
		r.Drain(ids[row], reason)
	}
	if uint32(len(idle)) < surplus && f.NextIdle >= 0 {
		r.CallWithin(f.NextIdle - f.IdleBy)
	}
}

// needed returns how many executors run all tasks of a profile at once, within its bounds.
func needed(v *sdk.View, f *sdk.Fleet) uint32 {
	p := &v.Profiles
	tasks := uint64(p.QueuedTasks()[f.Row]) + uint64(p.RunningTasks()[f.Row])
	slots := uint64(max(p.Slots()[f.Row], 1))
	most := min(p.Ceiling()[f.Row], p.Max()[f.Row])
	if p.Mode()[f.Row] == hostabi.ModeFollow {
		most = min(most, max(p.Target()[f.Row], p.Floor()[f.Row]))
	}
	return sdk.Clamp(uint32(min((tasks+slots-1)/slots, hostabi.None)), p.Floor()[f.Row], most)
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
