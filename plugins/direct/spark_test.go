package direct_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
	"github.com/retinue-sched/retinue/sdk/policytest"
)

// sparkCases is where the scenarios are; what their words mean stands at their head.
const sparkCases = "../../daemon/scenario/testdata/spark_allocator.yaml"

type scenario struct {
	Name  string
	Conf  conf
	Steps []step
}

type conf struct {
	MaxPending      uint32
	MaxPendingPerRp uint32
	Maximum         *uint32
	Gate            string
}

type step struct {
	Target      map[string]uint32
	Pods        [][]any
	Known       *[]uint64
	At          int64
	Advance     int64
	Purge, Pass bool
	Expect      map[string]any
}

// The policy keeps Spark's allocation scenarios by itself, on the smallest world that shows it views and does what
// it answers. (daemon/scenario runs the same ones through the whole core.)
func TestSparkScenarios(t *testing.T) {
	text, err := os.ReadFile(sparkCases)
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []scenario
	if err := yaml.UnmarshalStrict(text, &scenarios); err != nil {
		t.Fatal(err)
	}
	if len(scenarios) == 0 {
		t.Fatal("there are no scenarios")
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			w := newWorld(t, s.Conf)
			for i, step := range s.Steps {
				w.do(step)
				for key, want := range step.Expect {
					if diff := cmp.Diff(want, w.seen(key, want)); diff != "" {
						t.Errorf("step %d: %s: -want +got:\n%s", i+1, key, diff)
					}
				}
				if step.Expect != nil {
					w.created, w.deletes, w.timeouts = nil, nil, nil
				}
			}
		})
	}
}

// member is an executor of the world.
type member struct {
	row     hostabi.ExecutorRow
	created int64
	pod     bool // it was in a pod update
}

// world keeps executors, asks the policy and does what it answers, unguarded.
type world struct {
	t         *testing.T
	conf      conf
	policy    *sdk.NativePolicy
	now       int64
	targets   map[uint32]uint32
	executors map[uint64]*member
	next      uint64

	created, deletes, timeouts []any
}

func newWorld(t *testing.T, c conf) *world {
	t.Helper()
	gate := c.Gate
	if gate == "" {
		gate = direct.GateAllSeen
	}
	policy, err := sdk.Native(&direct.Policy{}, []byte(`{"gate":"`+gate+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, conf: c, policy: policy, targets: map[uint32]uint32{}, executors: map[uint64]*member{}}
}

// do does one step.
func (w *world) do(s step) {
	if s.At > 0 {
		w.now = s.At
	}
	w.now += s.Advance
	if s.Target != nil {
		for p, n := range s.Target {
			id, err := strconv.ParseUint(p, 10, 32)
			if err != nil {
				w.t.Fatal(err)
			}
			w.targets[uint32(id)] = n
		}
		if w.out() == 0 {
			w.pass()
		}
	}
	for _, p := range s.Pods {
		w.observe(uint64(p[0].(float64)), p[1].(string))
	}
	if s.Known != nil {
		for id, m := range w.executors {
			m.row.Flags &^= hostabi.FlagRegistered
			if slices.Contains(*s.Known, id) {
				m.row.Flags |= hostabi.FlagRegistered
			}
		}
	}
	if s.Purge {
		maps.DeleteFunc(w.executors, func(_ uint64, m *member) bool { return !m.pod || m.row.Phase == hostabi.PhaseDeleted })
	}
	if s.Pass {
		w.pass()
	}
}

// observe is a pod update.
func (w *world) observe(id uint64, state string) {
	phases := map[string]hostabi.Phase{
		"Pending": hostabi.PhasePending, "Running": hostabi.PhaseRunning, "Succeeded": hostabi.PhaseSucceeded,
		"Failed": hostabi.PhaseFailed, "Deleted": hostabi.PhaseDeleted, "Unknown": 0,
	}
	phase, ok := phases[state]
	if !ok {
		w.t.Fatalf("there is no state %q", state)
	}
	m := w.executors[id]
	m.row.Phase, m.pod = phase, true
	if phase == hostabi.PhasePending {
		m.created = w.now
	}
}

// pass gives up what never appeared, then asks about releases, then about creates.
func (w *world) pass() {
	for _, id := range slices.Sorted(maps.Keys(w.executors)) {
		m := w.executors[id]
		if m.row.Phase == hostabi.PhaseRequested && !m.row.Flags.Has(hostabi.FlagRegistered) && w.now-m.created > 600_000 {
			m.row.Phase = hostabi.PhaseLost
			w.timeouts = append(w.timeouts, []any{float64(id)})
		}
	}
	groups := map[uint32][]any{}
	for _, r := range w.ask(hostabi.HookRelease).Releases {
		m := w.executors[r.Executor]
		if r.Mode != hostabi.Cancel || m.row.Phase > hostabi.PhasePending || m.row.Flags.Has(hostabi.FlagRegistered) {
			w.t.Errorf("released executor %d, %v: %+v", r.Executor, r.Mode, m.row)
		}
		m.row.Phase, m.row.Flags = hostabi.PhaseTerminating, m.row.Flags|hostabi.FlagCondemned
		groups[m.row.Profile] = append(groups[m.row.Profile], float64(r.Executor))
	}
	for _, p := range slices.Sorted(maps.Keys(groups)) {
		w.deletes = append(w.deletes, groups[p])
	}
	for _, c := range w.ask(hostabi.HookAllocate).Creates {
		for range c.Count {
			w.next++
			w.executors[w.next] = &member{created: w.now, row: hostabi.ExecutorRow{ID: w.next, Profile: c.Profile, Phase: hostabi.PhaseRequested, IdleSinceMS: -1}}
			w.created = append(w.created, []any{float64(w.next), float64(c.Profile)})
		}
	}
}

// ask shows the policy the world.
func (w *world) ask(hook hostabi.Hook) hostabi.Decision {
	v := hostabi.View{Hook: hook, Decision: hostabi.DecisionRow{ElapsedMS: w.now, MaxPending: w.conf.MaxPending}}
	for _, p := range slices.Sorted(maps.Keys(w.targets)) {
		left := uint32(hostabi.None)
		if w.conf.Maximum != nil {
			left = sdk.Minus(*w.conf.Maximum, uint32(w.next))
		}
		v.Profiles = append(v.Profiles, hostabi.ProfileRow{
			ID: p, Target: w.targets[p], Ceiling: w.targets[p], Max: hostabi.None, MaxPending: w.conf.MaxPendingPerRp,
			BatchSize: 5, LifetimeLeft: left, Mode: hostabi.ModeFollow, IdleTimeoutMS: 10_000,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(w.executors)) {
		m := w.executors[id]
		m.row.CreatedAgoMS = w.now - m.created
		v.Executors = append(v.Executors, m.row)
	}
	policytest.Count(&v)
	answer, err := w.policy.Call(hook, v.Encode(nil, hostabi.Projection{}))
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := hostabi.DecodeDecision(answer)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// out returns how many executors are requested or pending, and not registered.
func (w *world) out() int {
	n := 0
	for _, m := range w.executors {
		if (m.row.Phase == hostabi.PhaseRequested || m.row.Phase == hostabi.PhasePending) && !m.row.Flags.Has(hostabi.FlagRegistered) {
			n++
		}
	}
	return n
}

// seen returns what an expectation is about, as YAML has it: for deleted and notDeleted, those of want that are so.
func (w *world) seen(key string, want any) any {
	list := func(l []any) any { return append([]any{}, l...) }
	switch key {
	case "created":
		return list(w.created)
	case "total":
		return float64(w.next)
	case "out":
		return float64(w.out())
	case "deletes":
		return list(w.deletes)
	case "timeoutDeletes":
		return list(w.timeouts)
	case "deleted", "notDeleted":
		return slices.DeleteFunc(slices.Clone(want.([]any)), func(id any) bool {
			m := w.executors[uint64(id.(float64))]
			condemned := m != nil && m.row.Flags.Has(hostabi.FlagCondemned)
			return condemned != (key == "deleted")
		})
	default:
		w.t.Fatalf("there is no expectation %q", key)
		return nil
	}
}
