package policytest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// Each rule that an answer can break has its sentence, and an answer that breaks none has none.
func TestBrokenNamesEachRule(t *testing.T) {
	v := hostabi.View{
		Decision: hostabi.DecisionRow{ElapsedMS: 100, MaxPending: 9},
		Profiles: []hostabi.ProfileRow{
			{ID: 0, Floor: 2, Ceiling: 6, Max: 8, MaxPending: 5, BatchSize: 4, LifetimeLeft: 4},
			{ID: 1, Ceiling: 9, Max: hostabi.None, BatchSize: 9, LifetimeLeft: 9, BackoffUntilMS: 101},
			{ID: 2, Ceiling: hostabi.None, Max: 4, BatchSize: 9, LifetimeLeft: 3},
		},
		Executors: []hostabi.ExecutorRow{
			{ID: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, BusySlots: 1},
			{ID: 2, Phase: hostabi.PhasePending},
			{ID: 3, Phase: hostabi.PhaseRequested},
			{ID: 4, Phase: hostabi.PhaseTerminating, Flags: hostabi.FlagCondemned},
			{ID: 5, Profile: 7, Phase: hostabi.PhasePending},
			{ID: 6, Profile: 2, Phase: hostabi.PhaseTerminating, Flags: hostabi.FlagCondemned},
		},
	}
	release := func(mode hostabi.ReleaseMode, ids ...uint64) (d hostabi.Decision) {
		for _, id := range ids {
			d.Releases = append(d.Releases, hostabi.Release{Executor: id, Mode: mode})
		}
		return d
	}
	create := func(profile, count uint32) hostabi.Decision {
		return hostabi.Decision{Creates: []hostabi.Create{{Profile: profile, Count: count}}}
	}
	for _, c := range []struct {
		name string
		d    hostabi.Decision
		want string // "" for none
	}{
		{"nothing", hostabi.Decision{}, ""},
		{"a cancel", release(hostabi.Cancel, 2), ""},
		{"creates within the bounds", create(0, 3), ""},
		{"twice", release(hostabi.Cancel, 2, 2), "executor 2 is released twice"},
		{"unknown executor", release(hostabi.Cancel, 99), "executor 99 is not in the view"},
		{"executor of an unknown profile", release(hostabi.Cancel, 5), "executor 5 is of no profile"},
		{"leaving", release(hostabi.Drain, 4), "executor 4 leaves already"},
		{"cancel of a running one", release(hostabi.Cancel, 1), "executor 1 is cancelled, but it has started"},
		{"drain of a busy one", release(hostabi.Drain, 1), "executor 1 is drained, but it is busy"},
		{"kill", release(hostabi.Kill, 2), "executor 2 is killed"},
		{"below the floor", release(hostabi.Cancel, 2, 3), "2 of 3 are released, the floor is 2"},
		{"unknown profile", create(8, 1), "executors of profile 8 are created"},
		{"ceiling", create(0, 4), "4 are created beside 3, the ceiling is 6"},
		{"maximum", create(2, 4), "4 are created beside 1, the maximum is 4"},
		{"pending of the profile", create(0, 4), "4 are created beside 2, the bound on pending ones is 5"},
		{"batch", create(0, 5), "5 are created beside 0, the batch size is 4"},
		{"lifetime", create(2, 4), "what the application may still create is 3"},
		{"backoff", create(1, 1), "profile 1: 1 are created during its backoff"},
		{"pending of all", create(1, 8), "2 executors are starting and 8 created, the bound is 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := strings.Join(policytest.Broken(v, c.d), "; ")
			if c.want == "" && broken != "" || !strings.Contains(broken, c.want) {
				t.Errorf("got %q, want %q in it", broken, c.want)
			}
		})
	}
}

// A seed gives the same view each time, another seed mostly another one.
func TestRandomFollowsTheSeed(t *testing.T) {
	same := cmpopts.IgnoreUnexported(hostabi.View{})
	if diff := cmp.Diff(policytest.Random(7), policytest.Random(7), same); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(policytest.Random(7), policytest.Random(8), same) {
		t.Error("two seeds gave the same view")
	}
}
