package allocator

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

func plainConfig() Config {
	return Config{
		Application: "app", Epoch: 1_000_000, Seed: 7, Mode: Follow, Batch: 100 * time.Millisecond, Resync: time.Hour, Deadline: time.Second,
		Profiles: []Profile{
			{ID: 0, Name: "small", Slots: 2, Min: 1, Max: 8, BatchSize: 5, IdleTimeout: 10 * time.Second, CreationTimeout: time.Minute},
			{ID: 3, Name: "big", Slots: 4, BatchSize: 2, MaxPending: 3, ReleaseIdle: time.Second},
		},
	}
}

func sceneOf(store *snapshot.Store) Scene {
	return Scene{Fleet: store, Shown: store.Snapshot, Profiles: make([]Circumstance, 2)}
}

// A pass is two questions with rising numbers; an answer to any other question, or the same one again, is dropped.
func TestOnlyTheQuestionInFlightIsAnswered(t *testing.T) {
	store := snapshot.NewStore()
	store.SetTarget(snapshot.Target{Profile: 0, Count: 3})
	a, s := New(plainConfig()), sceneOf(store)
	release := a.Pass(t0, s)
	if release.Input.Hook != hostabi.HookRelease || a.Due() || a.NextAsk() != 0 {
		t.Fatalf("the pass begins with %v, due=%t, next=%d; want release and nothing else", release.Input.Hook, a.Due(), a.NextAsk())
	}
	if _, ok := a.Answer(t0, release.Number+1, hostabi.Decision{}, s); ok {
		t.Error("an answer to a question that was not asked counts")
	}
	v, taken := a.Answer(t0, release.Number, hostabi.Decision{Creates: []hostabi.Create{{Profile: 0, Count: 1}}}, s)
	if !taken || !v.Plan.Empty() {
		t.Errorf("answer taken: %t, plan empty: %t; a creation is no answer to what to let go", taken, v.Plan.Empty())
	}
	allocate, more := a.Go(t0, v, s)
	if !more || allocate.Input.Hook != hostabi.HookAllocate || allocate.Number <= release.Number {
		t.Fatalf("the pass goes on: %t, with %v number %d after %d", more, allocate.Input.Hook, allocate.Number, release.Number)
	}
	if _, ok := a.Answer(t0, release.Number, hostabi.Decision{}, s); ok {
		t.Error("the same question is answered twice")
	}
	v, taken = a.Answer(t0, allocate.Number, hostabi.Decision{Creates: []hostabi.Create{{Profile: 0, Count: 9}}}, s)
	want := []guard.Create{{Profile: 0, Count: 3}}
	if diff := cmp.Diff(want, v.Plan.Creates()); !taken || diff != "" || len(v.Violations) != 1 {
		t.Errorf("answer taken: %t, violations %v, creates (-want +got):\n%s", taken, v.Violations, diff)
	}
	if _, more := a.Go(t0, v, s); more {
		t.Error("the pass has a third question")
	}
}

// A question that is not answered in time goes to the built-in policy under a new number, and the late answer is dropped.
func TestLateAnswersAreDropped(t *testing.T) {
	store := snapshot.NewStore()
	a, s := New(plainConfig()), sceneOf(store)
	first := a.Pass(t0, s)
	if _, late := a.Late(t0.Add(time.Second)-1, s); late {
		t.Error("a question is late before its deadline")
	}
	second, late := a.Late(t0.Add(time.Second), s)
	if !late || !second.Builtin || second.Number <= first.Number || second.Input.Hook != first.Input.Hook {
		t.Fatalf("late=%t, %+v after %+v", late, second, first)
	}
	if _, ok := a.Answer(t0, first.Number, hostabi.Decision{}, s); ok {
		t.Error("the late answer counts")
	}
	if v, ok := a.Answer(t0, second.Number, hostabi.Decision{}, s); !ok || !v.Builtin {
		t.Errorf("the built-in policy's answer: taken=%t %+v", ok, v)
	}
}

// The counts of a profile tell apart who leaves and of whom there is no sign of life, so that a policy need not look.
func TestViewCountsTheFleet(t *testing.T) {
	store := snapshot.NewStore()
	for id := range snapshot.ID(9) {
		store.Assume(t0, snapshot.Executor{ID: id + 1})
	}
	store.SetLoad(1, snapshot.Load{Registered: true, Busy: 1}) // requested, as 5 to 9 are
	store.SetLoad(2, snapshot.Load{Draining: true})
	store.Observe(t0, snapshot.Observation{ID: 3, Phase: snapshot.Terminating, UID: "u", Version: 1})
	store.Condemn(t0, 4)
	row := New(plainConfig()).Pass(ms(1), sceneOf(store)).Input.Profiles[0]
	got := [...]uint32{row.Requested, row.Terminating, row.Registered, row.Busy, row.Draining, row.Condemned, row.Unseen}
	if want := [...]uint32{7, 2, 1, 1, 1, 1, 5}; got != want {
		t.Errorf("requested, terminating, registered, busy, draining, condemned and unseen are %v, want %v", got, want)
	}
}

// What a policy is shown is what there is.
func TestViewShowsTheFleet(t *testing.T) {
	store := snapshot.NewStore()
	store.SetTarget(snapshot.Target{Profile: 0, Count: 12})
	store.Assume(ms(500), snapshot.Executor{ID: 4, Profile: 0, Name: "x"})
	store.Observe(ms(1500), snapshot.Observation{ID: 4, Profile: 0, Phase: snapshot.Running, Name: "x", UID: "u", Version: 9, Node: "n", Zone: "z", Capacity: "spot", Restarts: 2})
	store.SetLoad(4, snapshot.Load{
		Registered: true, Slots: 2, IdleSince: ms(1700), Done: 3, Failed: 1, TaskTime: 10 * time.Second, Memory: 5, Disk: 6,
	})
	a := New(plainConfig())
	a.Begin(t0)
	s := sceneOf(store)
	s.Profiles[0] = Circumstance{Demand: task.Demand{Queued: 2, Held: 1, Oldest: ms(100)}, AtOnce: 1, Backoff: ms(2000) + 1, Failures: Failures{OOM: 2}}
	ask := a.Pass(ms(2000), s)
	var v hostabi.View
	ask.Input.View(&v, hostabi.Projection{})
	spoil(&v.Executors[0])
	ask.Input.View(&v, hostabi.Projection{}) // a second time nothing is left over
	want := hostabi.View{
		Hook: hostabi.HookRelease,
		Decision: hostabi.DecisionRow{
			ID: 1, ElapsedMS: 2000, WallMS: 1_003_000, Seed: mix(7, 1), Application: "app", Trigger: hostabi.TriggerTimer, APIBudget: hostabi.None,
		},
		Profiles: []hostabi.ProfileRow{
			{
				ID: 0, Name: "small", Target: 12, Floor: 1, Ceiling: 8, Max: 8, Running: 1, Registered: 1, Idle: 1, Slots: 2, QueuedTasks: 2, RunningTasks: 1,
				OldestQueuedMS: 1900, BatchSize: 1, LifetimeLeft: hostabi.None, BackoffUntilMS: 2001, Mode: hostabi.ModeFollow,
				CreationTimeoutMS: 60_000, IdleTimeoutMS: 10_000, FailuresOOM: 2,
			},
			{
				ID: 3, Name: "big", Max: hostabi.None, Slots: 4, OldestQueuedMS: -1, MaxPending: 3, BatchSize: 2, LifetimeLeft: hostabi.None,
				Mode: hostabi.ModeFollow, ReleaseIdleMS: 1000,
			},
		},
		Executors: []hostabi.ExecutorRow{{
			ID: 4, Phase: hostabi.PhaseRunning, PhaseSinceMS: 1500, CreatedAgoMS: 1500, Flags: hostabi.FlagRegistered, Slots: 2,
			Restarts: 2, IdleSinceMS: 1700, TasksDone: 3, TasksFailed: 1, MeanTaskMS: 2500_000_000, PeakMemoryBytes: 5, DiskBytes: 6, TotalTaskMS: 10_000,
			Node: "n", Zone: "z", CapacityType: "spot",
		}},
	}
	if diff := cmp.Diff(want, v, cmpopts.IgnoreUnexported(hostabi.View{})); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

// spoil sets all fields of a row to what they never are.
func spoil(row *hostabi.ExecutorRow) {
	for i := range reflect.TypeFor[hostabi.ExecutorRow]().NumField() {
		switch f := reflect.ValueOf(row).Elem().Field(i); {
		case f.CanInt():
			f.SetInt(77)
		case f.CanUint():
			f.SetUint(77)
		default:
			f.SetString("left over")
		}
	}
}

// A view that is filled for some columns has in them what a whole one has.
func TestViewShowsWhatIsAskedFor(t *testing.T) {
	store := snapshot.NewStore()
	store.Assume(ms(500), snapshot.Executor{ID: 4, Profile: 0, Name: "x"})
	store.Observe(ms(1500), snapshot.Observation{
		ID: 4, Profile: 0, Phase: snapshot.Pending, Wait: snapshot.WaitImage, Name: "x", UID: "u", Version: 9, Node: "n", Zone: "z", Capacity: "spot", Restarts: 2,
	})
	store.SetLoad(4, snapshot.Load{Registered: true, Slots: 2, IdleSince: ms(1700), Done: 3, Failed: 1, TaskTime: 10 * time.Second, Memory: 5, Disk: 6})
	a := New(plainConfig())
	a.Begin(t0)
	ask := a.Pass(ms(2000), sceneOf(store))
	var whole hostabi.View
	ask.Input.View(&whole, hostabi.Projection{})
	none := hostabi.Projection{}.With(hostabi.TableExecutors)
	for column := hostabi.ExecutorsID; column <= hostabi.ExecutorsCost; column++ {
		keep := none.With(hostabi.TableExecutors, column)
		part := hostabi.View{Executors: make([]hostabi.ExecutorRow, 1)}
		spoil(&part.Executors[0])
		ask.Input.View(&part, keep)
		if !bytes.Equal(part.Encode(nil, keep), whole.Encode(nil, keep)) {
			t.Errorf("column %v of the executors is another in a view with nothing else", column)
		}
	}
}

// State that a policy returns is shown to it the next time; an answer without state leaves it.
func TestStateIsHandedBack(t *testing.T) {
	a, s := New(plainConfig()), sceneOf(snapshot.NewStore())
	first := a.Pass(t0, s)
	state := []byte("mine")
	v, _ := a.Answer(t0, first.Number, hostabi.Decision{StateVersion: 2, State: state}, s)
	state[0] = 'x' // the buffer is the policy's
	second, _ := a.Go(t0, v, s)
	if d := second.Input.Decision; string(d.State) != "mine" || d.StateVersion != 2 {
		t.Errorf("state %q version %d, want what was returned", d.State, d.StateVersion)
	}
	a.Answer(t0, second.Number, hostabi.Decision{}, s)
	if third := a.Pass(t0, s); string(third.Input.Decision.State) != "mine" {
		t.Errorf("state %q after an answer without, want what was there", third.Input.Decision.State)
	}
}

// The ceiling is what a slow and obvious reading of the mode says, and the guard lets the fleet come to it and no further.
func TestCeilingIsWhatTheModeSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{Min: rapid.Uint32Range(0, 4).Draw(t, "min"), Max: rapid.SampledFrom([]uint32{0, 4, 6, 9}).Draw(t, "max"), Target: rapid.Uint32Range(0, 12).Draw(t, "target")}
		mode := rapid.SampledFrom([]Mode{Follow, Scale}).Draw(t, "mode")
		want := max(p.Target, p.Min)
		if p.Max > 0 && (want > p.Max || mode == Scale) {
			want = p.Max
		}
		cfg := plainConfig()
		cfg.Mode, cfg.Profiles = mode, []Profile{p}
		store := snapshot.NewStore()
		store.SetTarget(snapshot.Target{Profile: 0, Count: p.Target})
		live := rapid.Uint32Range(0, 5).Draw(t, "live")
		going := uint32(0)
		for id := snapshot.ID(1); id <= snapshot.ID(live); id++ {
			store.Assume(t0, snapshot.Executor{ID: id})
			store.Observe(t0, snapshot.Observation{ID: id, Phase: snapshot.Running, Version: snapshot.Version(id)})
			switch rapid.IntRange(0, 3).Draw(t, "leaving") {
			case 0:
				store.SetLoad(id, snapshot.Load{Registered: true, Draining: true})
				going++
			case 1:
				store.Condemn(t0, id)
				going++
			case 2:
				store.Observe(t0, snapshot.Observation{ID: id, Phase: snapshot.Terminating, Version: snapshot.Version(100 + id)})
				going++
			}
		}
		a := New(cfg)
		s := Scene{Fleet: store, Shown: store.Snapshot, Profiles: make([]Circumstance, 1)}
		v, _ := a.Answer(t0, a.Pass(t0, s).Number, hostabi.Decision{}, s)
		ask, _ := a.Go(t0, v, s)
		if got := ask.Input.Profiles[0].Ceiling; got != want {
			t.Fatalf("ceiling %d of %+v in mode %d, want %d", got, p, mode, want)
		}
		v, _ = a.Answer(t0, ask.Number, hostabi.Decision{Creates: []hostabi.Create{{Count: 1000}}}, s)
		created := uint32(0)
		for _, c := range v.Plan.Creates() {
			created += c.Count
		}
		room := want - min(want, live-going)
		if p.Max > 0 {
			room = min(room, p.Max-min(p.Max, live))
		}
		if created != room {
			t.Errorf("%d created with %d live, %d of them leaving, ceiling %d, max %d; want %d", created, live, going, want, p.Max, room)
		}
	})
}
