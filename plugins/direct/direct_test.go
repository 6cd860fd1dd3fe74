package direct_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// Whatever the view, the answer breaks no rule of the guard, does not depend on the order of rows, and is the same
// each time.
func TestAnswersKeepTheRules(t *testing.T) {
	for _, settings := range []string{"", `{"gate":"all-seen"}`} {
		rapid.Check(t, func(t *rapid.T) {
			v := policytest.Random(rapid.Uint64().Draw(t, "seed"))
			for _, hook := range []hostabi.Hook{hostabi.HookRelease, hostabi.HookAllocate} {
				p := policytest.New(t, &direct.Policy{}, settings)
				d := policytest.Ask(t, p, hook, v)
				if broken := policytest.Broken(v, d); broken != nil {
					t.Fatalf("%v: %q\n%+v", hook, broken, d)
				}
				for range 2 {
					again := policytest.Ask(t, p, hook, policytest.Shuffled(v, rapid.Uint64().Draw(t, "order")))
					if diff := cmp.Diff(d, again); diff != "" {
						t.Fatalf("%v: another order, another answer:\n%s", hook, diff)
					}
				}
			}
		})
	}
}

// No profile that loses an executor ends up with fewer than are wanted, and what is drained is idle, registered and
// holds no output.
func TestReleasesStopAtTheTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := policytest.Random(rapid.Uint64().Draw(t, "seed"))
		d := policytest.Ask(t, policytest.New(t, &direct.Policy{}, ""), hostabi.HookRelease, v)
		rows, left, wanted := map[uint64]hostabi.ExecutorRow{}, map[uint32]int{}, map[uint32]int{}
		for _, e := range v.Executors {
			rows[e.ID] = e
			if e.Phase <= hostabi.PhaseRunning && !e.Flags.Has(hostabi.FlagDecommissioning) {
				left[e.Profile]++
			}
		}
		for _, p := range v.Profiles {
			wanted[p.ID] = int(min(max(p.Target, p.Floor), p.Ceiling))
		}
		for _, r := range d.Releases {
			e := rows[r.Executor]
			if r.Mode == hostabi.Drain && (e.Flags.Has(hostabi.FlagHoldsOutput) || e.BusySlots > 0 || !e.Flags.Has(hostabi.FlagRegistered)) {
				t.Fatalf("drained %+v", e)
			}
			if left[e.Profile]--; left[e.Profile] < wanted[e.Profile] {
				t.Fatalf("profile %d: %d are left, %d are wanted", e.Profile, left[e.Profile], wanted[e.Profile])
			}
		}
	})
}

// profile returns a profile that wants target executors and bounds nothing.
func profile(id, target uint32) hostabi.ProfileRow {
	return hostabi.ProfileRow{
		ID: id, Target: target, Ceiling: hostabi.None, Max: hostabi.None, BatchSize: 1000, LifetimeLeft: hostabi.None,
		Mode: hostabi.ModeFollow, IdleTimeoutMS: 10_000,
	}
}

// created returns what is asked for, as text.
func created(d hostabi.Decision) (text string) {
	for _, c := range d.Creates {
		text += fmt.Sprintf("%d of %d; ", c.Count, c.Profile)
	}
	return text
}

// Each bound alone says how many are created.
func TestEachBoundCounts(t *testing.T) {
	requested := func(n int) (rows []hostabi.ExecutorRow) {
		for i := range n {
			rows = append(rows, hostabi.ExecutorRow{ID: uint64(i + 1), Phase: hostabi.PhaseRequested, CreatedAgoMS: 5})
		}
		return rows
	}
	for _, c := range []struct {
		name     string
		settings string
		change   func(*hostabi.View)
		want     string
	}{
		{"the target", "", func(*hostabi.View) {}, "20 of 0; "},
		{"batch size", "", func(v *hostabi.View) { v.Profiles[0].BatchSize = 7 }, "7 of 0; "},
		{"ceiling", "", func(v *hostabi.View) { v.Profiles[0].Ceiling = 6 }, "6 of 0; "},
		{"floor above the target", "", func(v *hostabi.View) { v.Profiles[0].Floor = 25 }, "25 of 0; "},
		{"maximum, terminating ones included", "", func(v *hostabi.View) {
			v.Profiles[0].Max = 5
			v.Executors = []hostabi.ExecutorRow{{ID: 1, Phase: hostabi.PhaseTerminating, Flags: hostabi.FlagCondemned}}
		}, "4 of 0; "},
		{"terminating ones are replaced", "", func(v *hostabi.View) {
			v.Executors = []hostabi.ExecutorRow{{ID: 1, Phase: hostabi.PhaseTerminating, Flags: hostabi.FlagCondemned}}
		}, "20 of 0; "},
		{"pending of the profile, registered ones too, running ones not", "", func(v *hostabi.View) {
			v.Profiles[0].MaxPending = 4
			v.Executors = []hostabi.ExecutorRow{
				{ID: 1, Phase: hostabi.PhasePending},
				{ID: 2, Phase: hostabi.PhaseRequested, Flags: hostabi.FlagRegistered},
				{ID: 3, Phase: hostabi.PhaseRunning},
			}
		}, "2 of 0; "},
		{"pending of all", "", func(v *hostabi.View) { v.Decision.MaxPending = 3 }, "3 of 0; "},
		{"what the application may still create", "", func(v *hostabi.View) { v.Profiles[0].LifetimeLeft = 2 }, "2 of 0; "},
		{"nothing left to create", "", func(v *hostabi.View) { v.Profiles[0].LifetimeLeft = 0 }, ""},
		{"backoff", "", func(v *hostabi.View) { v.Profiles[0].BackoffUntilMS = v.Decision.ElapsedMS + 1 }, ""},
		{"backoff that is over", "", func(v *hostabi.View) { v.Profiles[0].BackoffUntilMS = v.Decision.ElapsedMS }, "20 of 0; "},
		{"unseen ones fill the window", "", func(v *hostabi.View) {
			v.Profiles[0].BatchSize = 5
			v.Executors = requested(3)
		}, "2 of 0; "},
		{"one unseen closes the other gate", `{"gate":"all-seen"}`, func(v *hostabi.View) { v.Executors = requested(1) }, ""},
		{"a shared bound is split, and what one does not need goes to the other", "", func(v *hostabi.View) {
			v.Decision.MaxPending = 10
			v.Profiles = []hostabi.ProfileRow{profile(1, 1), profile(2, 100)}
		}, "1 of 1; 9 of 2; "},
		{"a shared bound is split evenly, the first ones get the rest", "", func(v *hostabi.View) {
			v.Decision.MaxPending = 11
			v.Profiles = []hostabi.ProfileRow{profile(9, 100), profile(2, 100), profile(5, 100)}
		}, "4 of 2; 4 of 5; 3 of 9; "},
		{"the application's lifetime is shared, too", "", func(v *hostabi.View) {
			v.Profiles = []hostabi.ProfileRow{profile(1, 4), profile(2, 100)}
			v.Profiles[0].LifetimeLeft, v.Profiles[1].LifetimeLeft = 6, 6
		}, "4 of 1; 2 of 2; "},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := hostabi.View{Decision: hostabi.DecisionRow{ElapsedMS: 50_000}, Profiles: []hostabi.ProfileRow{profile(0, 20)}}
			c.change(&v)
			d := policytest.Ask(t, policytest.New(t, &direct.Policy{}, c.settings), hostabi.HookAllocate, v)
			if got := created(d); got != c.want {
				t.Errorf("created %q, want %q", got, c.want)
			}
		})
	}
}

// Requests beyond the target go once they are old enough, those never seen first; idle executors go where the
// profile says so; and the policy asks to be called when time alone makes the next one due.
func TestReleases(t *testing.T) {
	const now = 100_000
	pending := func(id uint64, age int64) hostabi.ExecutorRow {
		return hostabi.ExecutorRow{ID: id, Phase: hostabi.PhasePending, CreatedAgoMS: age}
	}
	idle := func(id uint64, since int64) hostabi.ExecutorRow {
		return hostabi.ExecutorRow{ID: id, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, IdleSinceMS: since, CreatedAgoMS: 90_000}
	}
	requested := func(id uint64, age int64) hostabi.ExecutorRow {
		return hostabi.ExecutorRow{ID: id, Phase: hostabi.PhaseRequested, CreatedAgoMS: age}
	}
	for _, c := range []struct {
		name        string
		target      uint32
		releaseIdle int64
		executors   []hostabi.ExecutorRow
		want        string
	}{
		{"nothing beyond the target", 2, 1, []hostabi.ExecutorRow{pending(1, 20_000), idle(2, 0)}, ""},
		{"exactly as old as the timeout is too young", 0, 0, []hostabi.ExecutorRow{pending(1, 10_000)}, "call in 1"},
		{"a young one is due when it is older than the timeout", 0, 0, []hostabi.ExecutorRow{pending(1, 4000), pending(2, 7000)}, "call in 3001"},
		{
			"never seen before pending, oldest first", 2, 0,
			[]hostabi.ExecutorRow{pending(1, 30_000), requested(2, 20_000), pending(3, 15_000), requested(4, 11_000), pending(5, 12_000)},
			"cancel 1 cancel 2 cancel 4 ",
		},
		{"enough was cancelled, so nothing else is due", 1, 0, []hostabi.ExecutorRow{requested(1, 20_000), requested(2, 1000)}, "cancel 1 "},
		{"running ones stay without a time for idle ones", 0, 0, []hostabi.ExecutorRow{idle(1, 0), idle(2, 0)}, ""},
		{"the longest idle first, down to the target", 1, 30_000, []hostabi.ExecutorRow{idle(1, 50_000), idle(2, 20_000), idle(3, 40_000)}, "drain 2 drain 3 "},
		{"what was cancelled counts for idle ones", 1, 30_000, []hostabi.ExecutorRow{pending(1, 30_000), idle(2, 0), idle(3, 0)}, "cancel 1 drain 2 "},
		{"idle for exactly as long is long enough", 0, 30_000, []hostabi.ExecutorRow{idle(1, 70_000)}, "drain 1 "},
		{"the next idle one is due later", 0, 30_000, []hostabi.ExecutorRow{idle(1, 60_000), idle(2, 75_000), idle(3, 90_000)}, "drain 1 call in 5000"},
		{"an executor that leaves already does not count", 1, 30_000, []hostabi.ExecutorRow{
			{ID: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered | hostabi.FlagDecommissioning}, idle(2, 0),
		}, ""},
		{"registered before it was seen: not cancelled", 0, 0, []hostabi.ExecutorRow{
			{ID: 1, Phase: hostabi.PhaseRequested, Flags: hostabi.FlagRegistered, CreatedAgoMS: 99_000},
			{ID: 2, Phase: hostabi.PhasePending, Flags: hostabi.FlagRegistered, CreatedAgoMS: 99_000},
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(0, c.target)
			p.ReleaseIdleMS = c.releaseIdle
			v := hostabi.View{Decision: hostabi.DecisionRow{ElapsedMS: now}, Profiles: []hostabi.ProfileRow{p}, Executors: c.executors}
			d := policytest.Ask(t, policytest.New(t, &direct.Policy{}, ""), hostabi.HookRelease, v)
			got := ""
			for _, r := range d.Releases {
				got += fmt.Sprintf("%v %d ", r.Mode, r.Executor)
			}
			if d.NextCallMS > 0 {
				got += fmt.Sprintf("call in %d", d.NextCallMS)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A setting that is not there, or a gate that is none, is refused with what there is.
func TestSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"gaet":"window"}`: `setting "gaet": there is no such setting, did you mean "gate"?`,
		`{"gate":"open"}`:   `setting "gate": "open" is not right, it takes one of window, all-seen`,
	} {
		if _, err := newNative(settings); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %q", settings, err, want)
		}
	}
}

func newNative(settings string) (*sdk.NativePolicy, error) {
	return sdk.Native(&direct.Policy{}, []byte(settings))
}
