package elastic_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// Whatever the view and the state, the answer breaks no rule of the guard, does not depend on the order of rows, and
// is the same each time.
func TestAnswersKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := policytest.Random(rapid.Uint64().Draw(t, "seed"))
		if rapid.Bool().Draw(t, "state") {
			v.Decision.StateVersion = rapid.SampledFrom([]uint32{1, 7}).Draw(t, "version")
			v.Decision.State = rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "bytes")
		}
		for _, hook := range []hostabi.Hook{hostabi.HookRelease, hostabi.HookAllocate} {
			p := policytest.New(t, &elastic.Policy{}, `{"first":5}`)
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

// scaling returns a profile of 4 slots in mode scale, from 1 to 20 executors, with a backlog of queued tasks.
func scaling(queued uint32) hostabi.ProfileRow {
	return hostabi.ProfileRow{
		Floor: 1, Ceiling: 20, Max: hostabi.None, Slots: 4, QueuedTasks: queued, BatchSize: 1000, LifetimeLeft: hostabi.None,
		Mode: hostabi.ModeScale, IdleTimeoutMS: 10_000,
	}
}

// running returns n running executors.
func running(n int) (rows []hostabi.ExecutorRow) {
	for i := range n {
		rows = append(rows, hostabi.ExecutorRow{ID: uint64(i + 1), Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, BusySlots: 1, IdleSinceMS: -1})
	}
	return rows
}

// A fleet grows to what its backlog needs, in steps, between its bounds.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings string
		profile  func(*hostabi.ProfileRow)
		live     int
		want     uint32
	}{
		{"an empty fleet starts with one", "", func(*hostabi.ProfileRow) {}, 0, 1},
		{"or with more", `{"first":6}`, func(*hostabi.ProfileRow) {}, 0, 6},
		{"or with the floor", "", func(p *hostabi.ProfileRow) { p.Floor = 3 }, 0, 3},
		{"it doubles", "", func(*hostabi.ProfileRow) {}, 4, 4},
		{"as far as the backlog needs", "", func(p *hostabi.ProfileRow) { p.QueuedTasks = 21 }, 4, 2},
		{"which running tasks are part of", "", func(p *hostabi.ProfileRow) { p.QueuedTasks, p.RunningTasks = 1, 20 }, 4, 2},
		{"as far as the ceiling", "", func(p *hostabi.ProfileRow) { p.Ceiling = 5 }, 4, 1},
		{"as far as the maximum", "", func(p *hostabi.ProfileRow) { p.Max = 6 }, 4, 2},
		{"in mode follow as far as the target", "", func(p *hostabi.ProfileRow) { p.Mode, p.Target = hostabi.ModeFollow, 7 }, 4, 3},
		{"in mode scale whatever the target", "", func(p *hostabi.ProfileRow) { p.Target = 1 }, 4, 4},
		{"no slots is one slot", "", func(p *hostabi.ProfileRow) { p.Slots, p.QueuedTasks = 0, 6 }, 4, 2},
		{"a full backlog of tasks is no overflow", "", func(p *hostabi.ProfileRow) {
			p.QueuedTasks, p.RunningTasks, p.Slots, p.Ceiling = 1<<32-1, 1<<32-1, 1, hostabi.None
		}, 4, 4},
		{"no backlog", "", func(p *hostabi.ProfileRow) { p.QueuedTasks = 0 }, 4, 0},
		{"a backoff", "", func(p *hostabi.ProfileRow) { p.BackoffUntilMS = 1 << 40 }, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := scaling(200)
			c.profile(&p)
			v := hostabi.View{Decision: hostabi.DecisionRow{ElapsedMS: 5000}, Profiles: []hostabi.ProfileRow{p}, Executors: running(c.live)}
			d := policytest.Ask(t, policytest.New(t, &elastic.Policy{}, c.settings), hostabi.HookAllocate, v)
			got := uint32(0)
			for _, r := range d.Creates {
				got += r.Count
			}
			if got != c.want {
				t.Errorf("created %d, want %d", got, c.want)
			}
		})
	}
}

// However often it is asked, a fleet at most doubles within a growth interval, and the policy asks to be called when
// the interval ends.
func TestGrowthIntervals(t *testing.T) {
	w := world{policy: policytest.New(t, &elastic.Policy{}, `{"growth_interval":"2s"}`), profile: scaling(200)}
	var sizes []int
	for ; w.now < 9000; w.now += 500 {
		w.allocate(t)
		sizes = append(sizes, len(w.executors))
	}
	want := []int{1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 16, 16}
	if diff := cmp.Diff(want, sizes); diff != "" {
		t.Errorf("the fleet's sizes, each half second: -want +got:\n%s", diff)
	}
	if w.called != 1500 {
		t.Errorf("it asks to be called in %d ms, want 1500", w.called)
	}
}

// State from another life, whose interval began in what is now the future, or of another version, holds nothing back.
func TestForeignStateIsForgotten(t *testing.T) {
	for _, state := range []struct {
		version uint32
		bytes   []byte
	}{
		{1, append(make([]byte, 8), 0, 0, 0, 0, 0, 1, 0, 0)},
		{1, []byte("odd")},
		{2, make([]byte, 16)},
	} {
		w := world{policy: policytest.New(t, &elastic.Policy{}, ""), profile: scaling(200), now: 5000, version: state.version, state: state.bytes}
		w.executors, w.next = running(4), 4
		w.allocate(t)
		if len(w.executors) != 8 {
			t.Errorf("state %d %v: the fleet has %d executors, want 8", state.version, state.bytes, len(w.executors))
		}
	}
}

// A surplus of requests goes once they are old enough, the youngest first; idle executors go once they were idle
// for long enough, the longest idle first, and no more than the surplus.
func TestShrinking(t *testing.T) {
	idle := func(id uint64, since int64) hostabi.ExecutorRow {
		return hostabi.ExecutorRow{ID: id, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, IdleSinceMS: since}
	}
	pending := func(id uint64, age int64) hostabi.ExecutorRow {
		return hostabi.ExecutorRow{ID: id, Phase: hostabi.PhasePending, CreatedAgoMS: age}
	}
	for _, c := range []struct {
		name      string
		settings  string
		tasks     uint32
		executors []hostabi.ExecutorRow
		want      string
	}{
		{"the longest idle first, down to the floor", "", 0, []hostabi.ExecutorRow{idle(1, 60_000), idle(2, 50_000), idle(3, 1000)}, "drain 3 drain 2 "},
		{"not before they were idle for long enough", "", 0, []hostabi.ExecutorRow{idle(1, 70_001), idle(2, 90_000)}, "call in 1"},
		{"as long as the settings say", `{"idle":"5s"}`, 0, []hostabi.ExecutorRow{idle(1, 95_000), idle(2, 99_000)}, "drain 1 "},
		{"not while the backlog needs them", "", 9, []hostabi.ExecutorRow{idle(1, 0), idle(2, 0), idle(3, 0)}, ""},
		{"requests before executors", "", 4, []hostabi.ExecutorRow{idle(1, 0), pending(2, 20_000)}, "cancel 2 "},
		{"the youngest of the old requests", "", 4, []hostabi.ExecutorRow{pending(1, 20_000), pending(2, 15_000), pending(3, 11_000)}, "cancel 3 cancel 2 "},
		{"young requests wait", "", 4, []hostabi.ExecutorRow{idle(1, 99_000), pending(2, 4000)}, "call in 6001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := hostabi.View{Decision: hostabi.DecisionRow{ElapsedMS: 100_000}, Profiles: []hostabi.ProfileRow{scaling(c.tasks)}, Executors: c.executors}
			d := policytest.Ask(t, policytest.New(t, &elastic.Policy{}, c.settings), hostabi.HookRelease, v)
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

// From any fleet and with a backlog that does not change, the fleet comes to what the backlog needs and stays
// there, with the policy asked only when it wishes to be.
func TestItConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world{policy: policytest.New(t, &elastic.Policy{}, ""), profile: scaling(rapid.Uint32Range(0, 120).Draw(t, "queued")), now: 100_000}
		for i := range rapid.IntRange(0, 25).Draw(t, "live") {
			w.next++
			w.executors = append(w.executors, hostabi.ExecutorRow{ID: uint64(i + 1), Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, IdleSinceMS: rapid.Int64Range(0, w.now).Draw(t, "idle since")})
		}
		want := int(min(max((w.profile.QueuedTasks+3)/4, w.profile.Floor), w.profile.Ceiling))
		for range 100 {
			changed := w.release(t)
			changed = w.allocate(t) || changed
			if w.called == 0 && !changed {
				break
			}
			w.now += max(w.called, 1)
			w.called = 0
		}
		if len(w.executors) != want || w.called != 0 {
			t.Fatalf("the fleet has %d executors, want %d; next call in %d ms", len(w.executors), want, w.called)
		}
	})
}

// world is one profile whose executors run as soon as they are asked for, and stay idle.
type world struct {
	policy    *sdk.NativePolicy
	profile   hostabi.ProfileRow
	executors []hostabi.ExecutorRow
	now       int64
	next      uint64
	called    int64 // in how many ms the policy asks to be called, the shortest wish; 0 for none
	version   uint32
	state     []byte
}

// ask asks the policy and keeps its state and its wish.
func (w *world) ask(t policytest.Test, hook hostabi.Hook) hostabi.Decision {
	t.Helper()
	d := policytest.Ask(t, w.policy, hook, hostabi.View{
		Decision: hostabi.DecisionRow{ElapsedMS: w.now, StateVersion: w.version, State: w.state},
		Profiles: []hostabi.ProfileRow{w.profile}, Executors: w.executors,
	})
	if d.StateVersion != 0 {
		w.version, w.state = d.StateVersion, d.State
	}
	if d.NextCallMS > 0 && (w.called == 0 || d.NextCallMS < w.called || hook == hostabi.HookAllocate) {
		w.called = d.NextCallMS
	}
	return d
}

// allocate asks for executors, adds them and reports whether there were any.
func (w *world) allocate(t policytest.Test) bool {
	t.Helper()
	created := false
	for _, c := range w.ask(t, hostabi.HookAllocate).Creates {
		for range c.Count {
			w.next++
			w.executors = append(w.executors, hostabi.ExecutorRow{ID: w.next, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, IdleSinceMS: w.now})
			created = true
		}
	}
	return created
}

// release takes away what the policy lets go and reports whether there was anything.
func (w *world) release(t policytest.Test) bool {
	t.Helper()
	releases := w.ask(t, hostabi.HookRelease).Releases
	w.executors = slices.DeleteFunc(w.executors, func(e hostabi.ExecutorRow) bool {
		return slices.ContainsFunc(releases, func(r hostabi.Release) bool { return r.Executor == e.ID })
	})
	return len(releases) > 0
}
