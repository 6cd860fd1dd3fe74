package guard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// fleet is six executors of profile 0, one in each state that matters, and one of a profile that nobody may decide on.
func fleet() *snapshot.Store {
	s := snapshot.NewStore()
	add := func(id snapshot.ID, p snapshot.Profile, phase snapshot.Phase, l snapshot.Load) {
		s.Assume(0, snapshot.Executor{ID: id, Profile: p})
		if phase != snapshot.Requested {
			s.Observe(0, snapshot.Observation{ID: id, Phase: phase})
		}
		s.SetLoad(id, l)
	}
	busy := snapshot.Load{Registered: true, Slots: 2, Busy: 1}
	idle := snapshot.Load{Registered: true, Slots: 2}
	add(1, 0, snapshot.Requested, snapshot.Load{})
	add(2, 0, snapshot.Pending, snapshot.Load{})
	add(3, 0, snapshot.Running, busy)
	add(4, 0, snapshot.Running, idle)
	add(5, 0, snapshot.Running, snapshot.Load{Registered: true, Slots: 2, Busy: 1, Draining: true})
	add(6, 0, snapshot.Failed, snapshot.Load{})
	add(7, 9, snapshot.Running, idle)
	add(8, 0, snapshot.Requested, idle) // registered before anybody saw its pod
	add(9, 0, snapshot.Running, snapshot.Load{})
	s.Condemn(0, 9)
	return s
}

const none = ^uint32(0)

// limits bound nothing.
func limits(change func(*guard.Limits, *guard.ProfileLimits)) guard.Limits {
	l := guard.Limits{LifetimeLeft: 1 << 60, Churn: none, Profiles: []guard.ProfileLimits{{Profile: 0, Ceiling: none, Max: none}}}
	if change != nil {
		change(&l, &l.Profiles[0])
	}
	return l
}

func release(id uint64, mode hostabi.ReleaseMode) hostabi.Decision {
	return hostabi.Decision{Releases: []hostabi.Release{{Executor: id, Mode: mode, Reason: "r"}}}
}

// What may become of one release.
func TestRelease(t *testing.T) {
	kill := limits(func(l *guard.Limits, _ *guard.ProfileLimits) { l.Grants.Kill = true })
	drain := limits(func(l *guard.Limits, _ *guard.ProfileLimits) { l.Grants.DrainBusy = true })
	floor := func(n uint32) guard.Limits {
		return limits(func(_ *guard.Limits, p *guard.ProfileLimits) { p.Floor = n })
	}
	still := limits(func(l *guard.Limits, _ *guard.ProfileLimits) { l.Churn = 0 })
	cases := map[string]struct {
		limits   guard.Limits
		decision hostabi.Decision
		mode     guard.Mode // 0: refused
		rule     guard.Rule // empty: no violation
	}{
		"cancel of a requested one":             {limits(nil), release(1, hostabi.Cancel), guard.Cancel, ""},
		"cancel of a pending one":               {limits(nil), release(2, hostabi.Cancel), guard.Cancel, ""},
		"cancel of a running one":               {limits(nil), release(4, hostabi.Cancel), 0, guard.CancelStarted},
		"cancel of a registered, unseen one":    {limits(nil), release(8, hostabi.Cancel), 0, guard.CancelStarted},
		"drain of an idle one":                  {limits(nil), release(4, hostabi.Drain), guard.Drain, ""},
		"drain of a busy one":                   {limits(nil), release(3, hostabi.Drain), guard.DrainWhenIdle, guard.DrainBusy},
		"drain of a busy one, granted":          {drain, release(3, hostabi.Drain), guard.Drain, ""},
		"drain of one that has not started":     {limits(nil), release(2, hostabi.Drain), guard.Cancel, ""},
		"drain of a registered, unseen one":     {limits(nil), release(8, hostabi.Drain), guard.Drain, ""},
		"drain of a draining one":               {limits(nil), release(5, hostabi.Drain), 0, guard.ReleaseMoot},
		"kill":                                  {limits(nil), release(3, hostabi.Kill), 0, guard.KillNotGranted},
		"kill, granted":                         {kill, release(3, hostabi.Kill), guard.Kill, ""},
		"kill of a draining one, granted":       {kill, release(5, hostabi.Kill), guard.Kill, ""},
		"kill of a condemned one, granted":      {kill, release(9, hostabi.Kill), 0, guard.ReleaseMoot},
		"release of an ended one":               {kill, release(6, hostabi.Kill), 0, guard.ReleaseMoot},
		"release of an unknown one":             {kill, release(77, hostabi.Drain), 0, guard.UnknownExecutor},
		"release of another profile's":          {kill, release(7, hostabi.Drain), 0, guard.UnknownProfile},
		"release in an unknown way":             {kill, release(4, 9), 0, guard.UnknownMode},
		"five stay, floor five":                 {floor(5), release(4, hostabi.Drain), 0, guard.BelowFloor},
		"five stay, floor four":                 {floor(4), release(4, hostabi.Drain), guard.Drain, ""},
		"a draining one does not stay anyway":   {guard.Limits{Churn: none, Grants: kill.Grants, Profiles: floor(5).Profiles}, release(5, hostabi.Kill), guard.Kill, ""},
		"no more churn":                         {still, release(4, hostabi.Drain), 0, guard.OverChurn},
		"a churn that is used up does not mind": {still, release(77, hostabi.Drain), 0, guard.UnknownExecutor},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan, violations := guard.Check(c.limits, fleet(), c.decision)
			var want []guard.Release
			if c.mode != 0 {
				want = []guard.Release{{Executor: snapshot.ID(c.decision.Releases[0].Executor), Mode: c.mode, Reason: "r"}}
			}
			if diff := cmp.Diff(want, plan.Releases()); diff != "" {
				t.Errorf("releases (-want +got):\n%s", diff)
			}
			checkRules(t, violations, c.rule)
		})
	}
}

func checkRules(t *testing.T, violations []guard.Violation, want guard.Rule) {
	t.Helper()
	got := guard.Rule("")
	for _, v := range violations {
		got = v.Rule
		if v.Detail == "" {
			t.Errorf("%s has no detail", v.Rule)
		}
	}
	if len(violations) > 1 || got != want {
		t.Errorf("violations %v, want %q", violations, want)
	}
}

// What may become of the wish for ten more. Of profile 0 there are 3 requested or pending, 3 running, and 1 terminating because we said so.
func TestCreate(t *testing.T) {
	type bounds = func(*guard.Limits, *guard.ProfileLimits)
	cases := map[string]struct {
		bounds bounds
		want   uint32
		rule   guard.Rule
	}{
		"no bounds":                     {nil, 10, ""},
		"ceiling, the condemned apart":  {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Ceiling = 8 }, 2, guard.OverCeiling},
		"ceiling just high enough":      {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Ceiling = 16 }, 10, ""},
		"ceiling below what there is":   {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Ceiling = 1 }, 0, guard.OverCeiling},
		"maximum, all counted":          {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Max = 8 }, 1, guard.OverMax},
		"pending in the profile":        {func(_ *guard.Limits, p *guard.ProfileLimits) { p.MaxPending = 7 }, 4, guard.OverPending},
		"pending in all":                {func(l *guard.Limits, _ *guard.ProfileLimits) { l.MaxPending = 5 }, 2, guard.OverPending},
		"at once":                       {func(_ *guard.Limits, p *guard.ProfileLimits) { p.AtOnce = 1 }, 1, guard.OverAtOnce},
		"lifetime":                      {func(l *guard.Limits, _ *guard.ProfileLimits) { l.LifetimeLeft = 3 }, 3, guard.OverLifetime},
		"churn":                         {func(l *guard.Limits, _ *guard.ProfileLimits) { l.Churn = 4 }, 4, guard.OverChurn},
		"no churn left":                 {func(l *guard.Limits, _ *guard.ProfileLimits) { l.Churn = 0 }, 0, guard.OverChurn},
		"blocked":                       {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Blocked = "stale" }, 0, guard.CreateBlocked},
		"unknown profile":               {func(_ *guard.Limits, p *guard.ProfileLimits) { p.Profile = 1 }, 0, guard.UnknownProfile},
		"one bound after another clips": {func(l *guard.Limits, p *guard.ProfileLimits) { p.Ceiling, p.AtOnce, l.Churn = none, 0, 6 }, 6, guard.OverChurn},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ask := hostabi.Create{Profile: 0, Count: 10, Zone: "z", CapacityType: "spot", Node: "n", Reason: "r"}
			plan, violations := guard.Check(limits(c.bounds), fleet(), hostabi.Decision{Creates: []hostabi.Create{ask}})
			var want []guard.Create
			if c.want > 0 {
				want = []guard.Create{{Profile: 0, Count: c.want, Zone: "z", Capacity: "spot", Node: "n", Reason: "r"}}
			}
			if diff := cmp.Diff(want, plan.Creates()); diff != "" {
				t.Errorf("creates (-want +got):\n%s", diff)
			}
			checkRules(t, violations, c.rule)
		})
	}
}

// A cancelled executor makes room for its replacement below the ceiling and among the pending, and none below the maximum.
func TestReleasesMakeRoom(t *testing.T) {
	d := hostabi.Decision{
		Creates:  []hostabi.Create{{Profile: 0, Count: 5}},
		Releases: []hostabi.Release{{Executor: 2, Mode: hostabi.Cancel}, {Executor: 1, Mode: hostabi.Cancel}},
	}
	create := func(l guard.Limits) uint32 {
		plan, _ := guard.Check(l, fleet(), d)
		n := uint32(0)
		for _, c := range plan.Creates() {
			n += c.Count
		}
		return n
	}
	full := limits(func(l *guard.Limits, p *guard.ProfileLimits) { p.Ceiling, p.MaxPending, l.MaxPending = 6, 3, 3 })
	if n := create(full); n != 2 {
		t.Errorf("%d created, want 2", n)
	}
	full.Profiles[0].Max = 7
	if n := create(full); n != 0 {
		t.Errorf("%d created above the maximum", n)
	}
}

// A killed executor makes room like a cancelled one, and one that was on its way out anyway costs nothing of the floor.
func TestKillingTheDraining(t *testing.T) {
	l := limits(func(l *guard.Limits, p *guard.ProfileLimits) { l.Grants.Kill, p.Ceiling, p.Floor = true, 6, 4 })
	plan, violations := guard.Check(l, fleet(), hostabi.Decision{
		Creates:  []hostabi.Create{{Profile: 0, Count: 5}},
		Releases: []hostabi.Release{{Executor: 5, Mode: hostabi.Kill}, {Executor: 4, Mode: hostabi.Drain}},
	})
	if diff := cmp.Diff([]guard.Create{{Profile: 0, Count: 1}}, plan.Creates()); diff != "" {
		t.Errorf("creates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]guard.Release{{Executor: 4, Mode: guard.Drain}, {Executor: 5, Mode: guard.Kill}}, plan.Releases()); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
	checkRules(t, violations, guard.OverCeiling)
}

// Each executor goes once, in ascending order; creations come by profile, then in the policy's order; a shared bound goes to who asked first.
func TestOrder(t *testing.T) {
	l := limits(func(l *guard.Limits, _ *guard.ProfileLimits) { l.LifetimeLeft = 4 })
	l.Profiles = append(l.Profiles, guard.ProfileLimits{Profile: 1, Ceiling: none, Max: none})
	plan, violations := guard.Check(l, fleet(), hostabi.Decision{
		Creates:  []hostabi.Create{{Profile: 1, Count: 2}, {Profile: 0, Count: 1, Node: "a"}, {Profile: 0, Count: 3, Node: "b"}, {Profile: 1, Count: 0}},
		Releases: []hostabi.Release{{Executor: 4, Mode: hostabi.Drain}, {Executor: 1, Mode: hostabi.Cancel}, {Executor: 4, Mode: hostabi.Drain}},
	})
	creates := []guard.Create{{Profile: 0, Count: 1, Node: "a"}, {Profile: 0, Count: 1, Node: "b"}, {Profile: 1, Count: 2}}
	if diff := cmp.Diff(creates, plan.Creates()); diff != "" {
		t.Errorf("creates (-want +got):\n%s", diff)
	}
	releases := []guard.Release{{Executor: 1, Mode: guard.Cancel}, {Executor: 4, Mode: guard.Drain}}
	if diff := cmp.Diff(releases, plan.Releases()); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
	var rules []guard.Rule
	for _, v := range violations {
		rules = append(rules, v.Rule)
	}
	if diff := cmp.Diff([]guard.Rule{guard.ReleaseTwice, guard.OverLifetime}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
