package sdk_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// Idle executors come in the order in which a stable comparison of their times puts them, whatever the times are and
// however far apart, also when a fleet is used a second time.
func TestLongestIdleFirstIsAStableSort(t *testing.T) {
	anyTime := rapid.OneOf(rapid.Int64Range(-1, 3), rapid.Int64Range(0, 100_000), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	rapid.Check(t, func(t *rapid.T) {
		var fleets []sdk.Fleet
		for range 2 {
			v := hostabi.View{Profiles: []hostabi.ProfileRow{{ID: 1}}}
			var want []int
			for row := range rapid.IntRange(0, 50).Draw(t, "executors") {
				e := hostabi.ExecutorRow{ID: uint64(row), Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, IdleSinceMS: anyTime.Draw(t, "since")}
				if e.BusySlots = rapid.Uint32Range(0, 4).Draw(t, "busy") / 4; e.BusySlots == 0 {
					want = append(want, row)
				}
				v.Executors = append(v.Executors, e)
			}
			slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(v.Executors[a].IdleSinceMS, v.Executors[b].IdleSinceMS) })
			policytest.Ask(t, policytest.New(t, asked(func(shown *sdk.View, _ *sdk.Result) error {
				fleets = sdk.Fleets(shown, fleets)
				sdk.Candidates(shown, fleets)
				fleets[0].LongestIdleFirst(shown)
				if got := fleets[0].IdleRunning; !slices.Equal(want, got) {
					t.Fatalf("got %v, want %v", got, want)
				}
				return nil
			}), ""), hostabi.HookAllocate, v)
		}
	})
}
