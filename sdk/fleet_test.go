package sdk_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// Fleets count what a look at each executor on its own counts, in whatever order the rows are, and do not remember
// the view before.
func TestFleetsCountEachExecutor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var buffer []sdk.Fleet
		for range 2 {
			v := policytest.Shuffled(policytest.Random(rapid.Uint64().Draw(t, "seed")), rapid.Uint64().Draw(t, "order"))
			policytest.Ask(t, policytest.New(t, asked(func(shown *sdk.View, _ *sdk.Result) error {
				buffer = sdk.Fleets(shown, buffer)
				for i := range buffer {
					buffer[i].Excess, buffer[i].IdleBy = uint32(len(v.Executors))+1, math.MaxInt64
				}
				sdk.Candidates(shown, buffer)
				for _, f := range buffer {
					if diff := gocmp.Diff(counted(v, f.ID), summary(v, f)); diff != "" {
						t.Fatalf("profile %d: -want +got:\n%s", f.ID, diff)
					}
				}
				if len(buffer) != len(v.Profiles) {
					t.Fatalf("there are %d fleets of %d profiles", len(buffer), len(v.Profiles))
				}
				return nil
			}), ""), hostabi.HookAllocate, v)
		}
	})
}

// sums is what is compared of a fleet.
type sums struct {
	Live, Unseen, NotRunning, Leaving int
	Unstarted, Idle                   []uint64
}

func summary(v hostabi.View, f sdk.Fleet) sums {
	s := sums{Live: int(f.Live()), Unseen: int(f.Unseen), NotRunning: int(f.NotRunning()), Leaving: int(f.Leaving())}
	for _, row := range f.Unstarted {
		s.Unstarted = append(s.Unstarted, v.Executors[row].ID)
	}
	for _, row := range f.Idle {
		s.Idle = append(s.Idle, v.Executors[row].ID)
	}
	slices.Sort(s.Idle)
	return s
}

// counted is the slow and obvious count of one profile: ids from the lowest up, each question asked of each.
func counted(v hostabi.View, profile uint32) (s sums) {
	for id := range uint64(400) {
		for _, e := range v.Executors {
			if e.ID != id || e.Profile != profile || e.Phase.Terminal() {
				continue
			}
			registered, starting := e.Flags.Has(hostabi.FlagRegistered), e.Phase == hostabi.PhaseRequested || e.Phase == hostabi.PhasePending
			leaving := e.Phase == hostabi.PhaseTerminating || e.Flags.Has(hostabi.FlagCondemned) || e.Flags.Has(hostabi.FlagDecommissioning)
			if leaving {
				s.Leaving++
			} else {
				s.Live++
			}
			if starting && !e.Flags.Has(hostabi.FlagCondemned) {
				s.NotRunning++
			}
			if !leaving && starting && !registered {
				s.Unstarted = append(s.Unstarted, id)
				if e.Phase == hostabi.PhaseRequested {
					s.Unseen++
				}
			}
			if !leaving && e.Phase == hostabi.PhaseRunning && registered && e.BusySlots == 0 && e.IdleSinceMS >= 0 && !e.Flags.Has(hostabi.FlagHoldsOutput) {
				s.Idle = append(s.Idle, id)
			}
		}
	}
	return s
}

// Executors on their way out and those in a phase that this version does not know are no candidates, and flags that it
// does not know make no difference, wherever they stand among the others.
func TestCandidatesMayGo(t *testing.T) {
	const unknownFlag = hostabi.Flags(1 << 31)
	v := hostabi.View{Profiles: []hostabi.ProfileRow{{ID: 1}}}
	var unstarted, idle []uint32
	for row := range 40 {
		e := hostabi.ExecutorRow{ID: uint64(row), Profile: 1, Phase: hostabi.Phase(row % 12), Flags: unknownFlag}
		switch {
		case row%12 == 0 || row%12 > int(hostabi.PhaseRunning): // 0 and 9 to 11 are no phases
			e.Phase |= hostabi.Phase(row/12) << 6
		case e.Phase == hostabi.PhaseRunning:
			e.Flags |= hostabi.FlagRegistered
			idle = append(idle, uint32(row))
		default:
			unstarted = append(unstarted, uint32(row))
		}
		v.Executors = append(v.Executors, e)
	}
	for _, leaving := range []hostabi.Flags{hostabi.FlagCondemned, hostabi.FlagDecommissioning} {
		v.Executors = append(v.Executors,
			hostabi.ExecutorRow{ID: 50, Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered | leaving},
			hostabi.ExecutorRow{ID: 51, Profile: 1, Phase: hostabi.PhasePending, Flags: leaving})
	}
	policytest.Ask(t, policytest.New(t, asked(func(shown *sdk.View, _ *sdk.Result) error {
		f := sdk.Fleets(shown, nil)
		f[0].Excess = 100
		sdk.Candidates(shown, f)
		if diff := gocmp.Diff([][]uint32{unstarted, idle}, [][]uint32{f[0].Unstarted, f[0].Idle}); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return nil
	}), ""), hostabi.HookAllocate, v)
}

// The idle executors that are found are those that a stable sort of all puts first, as far as they are wanted and have been idle for long enough,
// whatever the times are and however far apart, also when a fleet is used a second time.
func TestCandidatesAreTheLongestIdle(t *testing.T) {
	anyTime := rapid.OneOf(rapid.Int64Range(-1, 3), rapid.Int64Range(0, 100_000), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	rapid.Check(t, func(t *rapid.T) {
		var fleets []sdk.Fleet
		for range 2 {
			v := hostabi.View{Profiles: []hostabi.ProfileRow{{ID: 1}, {ID: 2}, {ID: 7}}}
			excess, by, next := rapid.OneOf(rapid.Uint32Range(0, 30), rapid.Uint32Range(900, 2000)).Draw(t, "excess"), anyTime.Draw(t, "by"), int64(-1)
			var want []uint32
			for row := range rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(1000, 1010)).Draw(t, "executors") {
				e := hostabi.ExecutorRow{
					ID: uint64(row), Profile: rapid.SampledFrom([]uint32{1, 1, 1, 2, 6, 7}).Draw(t, "profile"), Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered,
					IdleSinceMS: anyTime.Draw(t, "since"), BusySlots: rapid.Uint32Range(0, 4).Draw(t, "busy") / 4,
				}
				v.Executors = append(v.Executors, e)
				switch {
				case e.BusySlots > 0 || e.IdleSinceMS < 0 || e.Profile != 1 || excess == 0:
				case e.IdleSinceMS <= by:
					want = append(want, uint32(row))
				case next < 0 || e.IdleSinceMS < next:
					next = e.IdleSinceMS
				}
			}
			slices.SortStableFunc(want, func(a, b uint32) int { return cmp.Compare(v.Executors[a].IdleSinceMS, v.Executors[b].IdleSinceMS) })
			if most := min(int(excess), sdk.MostAtOnce); len(want) >= most {
				want, next = want[:most], -1
			}
			policytest.Ask(t, policytest.New(t, asked(func(shown *sdk.View, _ *sdk.Result) error {
				fleets = sdk.Fleets(shown, fleets)
				fleets[0].Excess, fleets[0].IdleBy = excess, by
				sdk.Candidates(shown, fleets)
				if got := fleets[0]; !slices.Equal(want, got.Idle) || got.NextIdle != next || len(fleets[1].Idle) > 0 {
					t.Fatalf("got %v and then since %d, want %v and %d", got.Idle, got.NextIdle, want, next)
				}
				return nil
			}), ""), hostabi.HookAllocate, v)
		}
	})
}

// Split gives away all there is or all that is wished for, nobody more than a wish, and nobody who wants more gets
// over one less than another.
func TestSplitIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Uint32Range(0, 60).Draw(t, "total")
		wishes := rapid.SliceOfN(rapid.Uint32Range(0, 30), 0, 8).Draw(t, "wishes")
		given := append([]uint32(nil), wishes...)
		sdk.Split(total, given)
		sum, wished := uint32(0), uint32(0)
		for i := range given {
			sum, wished = sum+given[i], wished+wishes[i]
			if given[i] > wishes[i] {
				t.Fatalf("gave %v of %v", given, wishes)
			}
			for j := range given {
				if given[i] < wishes[i] && given[j] > given[i]+1 {
					t.Fatalf("gave %v of %v", given, wishes)
				}
			}
		}
		if sum != min(total, wished) {
			t.Fatalf("gave %v of %v, together %d of %d", given, wishes, sum, total)
		}
	})
}
