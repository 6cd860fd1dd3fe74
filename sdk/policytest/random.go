package policytest

import (
	"math/rand/v2"

	"github.com/retinue-sched/retinue/hostabi"
)

// Random returns a view of some profiles and executors in all sorts of states, with bounds that matter.
func Random(seed uint64) hostabi.View {
	r := rand.New(rand.NewPCG(seed, 1))
	v := hostabi.View{Hook: hostabi.HookAllocate, Decision: hostabi.DecisionRow{
		ID: r.Uint64N(1000), ElapsedMS: r.Int64N(1_000_000), Seed: r.Uint64(), Application: "app", Trigger: hostabi.TriggerPods,
		APIBudget: hostabi.None, MaxPending: sometimes(r, 20, 0),
	}}
	for id := range uint32(r.IntN(4)) {
		v.Profiles = append(v.Profiles, randomProfile(r, id*2, v.Decision.ElapsedMS))
	}
	id := uint64(0)
	for range r.IntN(60) {
		id += 1 + r.Uint64N(3)
		v.Executors = append(v.Executors, randomExecutor(r, id, v.Decision.ElapsedMS))
	}
	Count(&v)
	return v
}

// sometimes returns a number below n, or otherwise.
func sometimes(r *rand.Rand, n, otherwise uint32) uint32 {
	if r.IntN(2) == 0 {
		return otherwise
	}
	return r.Uint32N(n)
}

func randomProfile(r *rand.Rand, id uint32, now int64) hostabi.ProfileRow {
	p := hostabi.ProfileRow{
		ID: id, Name: string(rune('a' + id)), Target: r.Uint32N(30), Floor: r.Uint32N(5), Ceiling: sometimes(r, 40, hostabi.None),
		Max: sometimes(r, 50, hostabi.None), Slots: r.Uint32N(5), QueuedTasks: r.Uint32N(100), RunningTasks: r.Uint32N(50),
		MaxPending: sometimes(r, 10, 0), BatchSize: 1 + r.Uint32N(20), LifetimeLeft: sometimes(r, 20, hostabi.None),
		Mode: hostabi.Mode(1 + r.IntN(2)), CreationTimeoutMS: 600_000, IdleTimeoutMS: r.Int64N(60_000), ReleaseIdleMS: r.Int64N(2) * r.Int64N(60_000),
	}
	if r.IntN(4) == 0 {
		p.BackoffUntilMS = now + r.Int64N(20_000) - 10_000
	}
	if p.Mode == hostabi.ModeFollow {
		p.Ceiling = p.Target
	}
	p.Floor = min(p.Floor, p.Ceiling, p.Max)
	return p
}

func randomExecutor(r *rand.Rand, id uint64, now int64) hostabi.ExecutorRow {
	e := hostabi.ExecutorRow{
		ID: id, Profile: 2 * r.Uint32N(4), Phase: hostabi.Phase(1 + r.IntN(8)), CreatedAgoMS: r.Int64N(100_000), Slots: 4, IdleSinceMS: -1,
		Node: "node", Zone: "zone",
	}
	if e.Phase <= hostabi.PhaseRunning && r.IntN(2) == 0 {
		e.Flags |= hostabi.FlagRegistered
	}
	for _, f := range []hostabi.Flags{hostabi.FlagDecommissioning, hostabi.FlagCondemned, hostabi.FlagHoldsOutput} {
		if r.IntN(6) == 0 {
			e.Flags |= f
		}
	}
	if e.Flags.Has(hostabi.FlagRegistered) {
		e.BusySlots = r.Uint32N(3)
	}
	if e.Flags.Has(hostabi.FlagRegistered) && e.BusySlots == 0 {
		e.IdleSinceMS = max(now-r.Int64N(100_000), 0)
	}
	if e.Flags.Has(hostabi.FlagCondemned) && e.Phase < hostabi.PhaseTerminating {
		e.Phase = hostabi.PhaseTerminating
	}
	return e
}
