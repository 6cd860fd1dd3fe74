// Package direct is the default policy: it keeps as many executors of each profile as are wanted, the way
// Spark's allocator for Kubernetes does, without the faults that are known of that one.
//
// It promises that
//
//   - it never lets go of an executor that has registered or runs, save an idle one where the profile asks for
//     that;
//   - it withdraws only requests that are older than the profile's idle timeout, so that a target that goes up
//     and down costs nothing;
//   - it creates no more than every bound in the view allows, and what one profile leaves of a shared bound goes
//     to the others;
//   - an executor that never shows up holds back nothing but its own place (with the default gate).
package direct

import (
	"slices"
	"strconv"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
)

// The gates, which say when a profile gets its next batch.
const (
	// GateWindow lets at most a batch of a profile's executors be unseen at any time.
	GateWindow = "window"
	// GateAllSeen waits until every executor of the profile has been seen, as Spark does.
	GateAllSeen = "all-seen"
)

// Policy is the policy. Its zero value, configured, is ready.
type Policy struct {
	gate   string
	fleets []sdk.Fleet
	wishes []uint32
}

// Configure takes one setting: gate, "window" (the default) or "all-seen".
func (p *Policy) Configure(s sdk.Settings) error {
	p.gate = GateWindow
	return s.Decode(sdk.Choice("gate", &p.gate, GateWindow, GateAllSeen))
}

// Allocate asks for what is missing.
func (p *Policy) Allocate(v *sdk.View, r *sdk.Result) error {
	p.fleets = sdk.Fleets(v, p.fleets)
	p.wishes = p.wishes[:0]
	for i := range p.fleets {
		p.wishes = append(p.wishes, p.wish(v, r, &p.fleets[i]))
	}
	sdk.Share(v, p.fleets, p.wishes)
	for i, n := range p.wishes {
		if f := &p.fleets[i]; n > 0 {
			r.Create(f.ID, n, "target "+decimal(wanted(v, f))+", live "+decimal(f.Live()))
		}
	}
	return nil
}

// wish returns how many executors a profile should get, as far as its own bounds go.
func (p *Policy) wish(v *sdk.View, r *sdk.Result, f *sdk.Fleet) uint32 {
	missing := sdk.Minus(wanted(v, f), f.Live())
	if missing == 0 {
		return 0
	}
	if wait := v.Profiles.BackoffUntilMS()[f.Row] - v.Decision.ElapsedMS(); wait > 0 {
		r.CallWithin(wait)
	}
	return min(missing, sdk.Headroom(v, f), p.window(v, f))
}

// window returns how many more unseen executors the gate lets through.
func (p *Policy) window(v *sdk.View, f *sdk.Fleet) uint32 {
	batch := v.Profiles.BatchSize()[f.Row]
	if p.gate == GateAllSeen && f.Unseen > 0 {
		return 0
	}
	return sdk.Minus(batch, f.Unseen)
}

// Release withdraws requests beyond the target and, where the profile says after how long, lets idle executors
// go.
func (p *Policy) Release(v *sdk.View, r *sdk.Result) error {
	p.fleets = sdk.Fleets(v, p.fleets)
	if !slices.ContainsFunc(p.fleets, func(f sdk.Fleet) bool { return mayShrink(v, &f) }) {
		return nil
	}
	for i := range p.fleets {
		f := &p.fleets[i]
		f.Excess, f.IdleBy = sdk.Minus(f.Live(), wanted(v, f)), idleBy(v, f)
	}
	sdk.Candidates(v, p.fleets)
	for i := range p.fleets {
		f := &p.fleets[i]
		drain(v, r, f, f.Excess-cancel(v, r, f, f.Excess))
	}
	return nil
}

// mayShrink reports whether a profile has too many executors, and perhaps some that may go.
func mayShrink(v *sdk.View, f *sdk.Fleet) bool {
	if f.Live() <= wanted(v, f) {
		return false
	}
	return f.NotRunning() > 0 || v.Profiles.ReleaseIdleMS()[f.Row] > 0 && v.Profiles.Idle()[f.Row] > 0
}

// cancel withdraws up to excess requests that are old enough and returns how many: first those that were never
// seen, then pending ones, the older ones first. Time alone makes the others old enough, so it asks to be called
// then.
func cancel(v *sdk.View, r *sdk.Result, f *sdk.Fleet, excess uint32) uint32 {
	if excess == 0 {
		return 0
	}
	ages, phases, ids := v.Executors.CreatedAgoMS(), v.Executors.Phase(), v.Executors.ID()
	timeout := v.Profiles.IdleTimeoutMS()[f.Row]
	var left [hostabi.PhasePending + 1]uint32 // how many of a phase are old enough, then how many of those still go
	oldest := int64(-1)                       // of those that are too young
	for _, row := range f.Unstarted {
		if ages[row] <= timeout {
			oldest = max(oldest, ages[row])
			continue
		}
		left[phases[row]]++
	}
	left[hostabi.PhaseRequested] = min(left[hostabi.PhaseRequested], excess)
	left[hostabi.PhasePending] = min(left[hostabi.PhasePending], excess-left[hostabi.PhaseRequested])
	cancelled := left[hostabi.PhaseRequested] + left[hostabi.PhasePending]
	if cancelled < excess && oldest >= 0 {
		r.CallWithin(timeout - oldest + 1)
	}
	if cancelled == 0 {
		return 0
	}
	reason := "over target " + decimal(wanted(v, f)) + ", not started after " + strconv.FormatInt(timeout, 10) + " ms"
	for _, row := range f.Unstarted {
		if n := &left[phases[row]]; *n > 0 && ages[row] > timeout {
			r.Cancel(ids[row], reason)
			*n--
		}
	}
	return cancelled
}

// idleBy returns since when an executor must have been idle to be let go; no time is early enough if the profile does not say after how long.
func idleBy(v *sdk.View, f *sdk.Fleet) int64 {
	after := v.Profiles.ReleaseIdleMS()[f.Row]
	if after <= 0 {
		return -1
	}
	return v.Decision.ElapsedMS() - after
}

// drain lets up to excess executors go that have been idle for long enough, the longest idle first, and asks to be
// called when the next one has been.
func drain(v *sdk.View, r *sdk.Result, f *sdk.Fleet, excess uint32) {
	after := v.Profiles.ReleaseIdleMS()[f.Row]
	if after <= 0 || excess == 0 {
		return
	}
	ids := v.Executors.ID()
	reason := "over target " + decimal(wanted(v, f)) + ", idle for " + strconv.FormatInt(after, 10) + " ms"
	idle := f.Idle[:min(len(f.Idle), int(excess))]
	for _, row := range idle {
		r.Drain(ids[row], reason)
	}
	if uint32(len(idle)) < excess && f.NextIdle >= 0 {
		r.CallWithin(f.NextIdle - f.IdleBy)
	}
}

// wanted returns how many executors a profile should have.
func wanted(v *sdk.View, f *sdk.Fleet) uint32 {
	p := &v.Profiles
	return sdk.Clamp(p.Target()[f.Row], p.Floor()[f.Row], p.Ceiling()[f.Row])
}

func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
