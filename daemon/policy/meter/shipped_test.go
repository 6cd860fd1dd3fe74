package meter

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/modules"
)

// view encodes a question about n busy executors, for which a policy has something to do.
func view(t testing.TB, binary []byte, n int) []byte {
	t.Helper()
	manifest, err := hostabi.ReadManifest(binary)
	if err != nil {
		t.Fatal(err)
	}
	projection, err := manifest.Projection(hostabi.HookAllocate)
	if err != nil {
		t.Fatal(err)
	}
	count := uint32(n)
	v := hostabi.View{
		Hook: hostabi.HookAllocate,
		Decision: hostabi.DecisionRow{
			ID: 1, ElapsedMS: 1000, WallMS: 1_700_000_000_000, Seed: 7, Application: "shop/a", Trigger: hostabi.TriggerTargets, APIBudget: hostabi.None,
		},
		Profiles: []hostabi.ProfileRow{{
			ID: 1, Name: "default", Target: count + 2, Ceiling: count + 2, Max: 2 * count, Slots: 1, OldestQueuedMS: -1, BatchSize: count,
			Running: count, Registered: count, Busy: count,
			LifetimeLeft: hostabi.None, Mode: hostabi.ModeFollow, CreationTimeoutMS: 60_000, IdleTimeoutMS: 60_000,
		}},
	}
	for id := range uint64(n) {
		v.Executors = append(v.Executors, hostabi.ExecutorRow{
			ID: id + 1, Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, Slots: 1, BusySlots: 1, IdleSinceMS: -1,
			Node: fmt.Sprintf("node-%d", id%97), Zone: "zone-a",
		})
	}
	return v.Encode(nil, projection)
}

// begin starts a policy and puts a view into it. It returns the call that asks about it.
func (i *instance) begin(t testing.TB, encoded []byte) call {
	t.Helper()
	for _, c := range []call{
		{"_initialize", nil},
		{hostabi.ExportAlloc, []uint64{uint64(hostabi.BufferInput), uint64(len(encoded))}},
	} {
		o := i.do(c)
		if o.Err != "" {
			t.Fatalf("%s: %s", c.name, o.Err)
		}
		if c.name == hostabi.ExportAlloc {
			at := api.DecodeU32(o.Results[0])
			if !i.Memory().Write(at, encoded) {
				t.Fatalf("the buffer at %d is outside of the memory", at)
			}
			return call{hostabi.ExportAllocate, []uint64{uint64(at), uint64(len(encoded))}}
		}
	}
	return call{}
}

// shipped returns the modules that ship with the daemon, by name.
func shipped(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, m := range modules.Shipped() {
		binary, err := m.Wasm()
		if err != nil {
			t.Fatal(err)
		}
		all[m.Name] = binary
	}
	return all
}

// The policies that ship with the daemon decide the same with a meter and without, on both engines, for the same ticks.
func TestShippedPoliciesDecideTheSame(t *testing.T) {
	for name, binary := range shipped(t) {
		t.Run(name, func(t *testing.T) {
			encoded := view(t, binary, 300)
			tw := newTwins(t, binary)
			var plain, metered []outcome
			for _, i := range tw.plain {
				c := i.begin(t, encoded)
				plain = append(plain, i.do(c))
			}
			for _, i := range tw.metered {
				c := i.begin(t, encoded)
				metered = append(metered, i.do(c))
			}
			if plain[0].Err != "" || len(plain[0].Results) != 1 || plain[0].Results[0] == 0 {
				t.Fatalf("it does not decide: %+v", plain[0])
			}
			if diff := cmp.Diff(metered[0], metered[1]); diff != "" || metered[0].Ticks < 100 {
				t.Errorf("%d ticks; the engines differ (-compiler +interpreter):\n%s", metered[0].Ticks, diff)
			}
			metered[0].Ticks = 0
			if diff := cmp.Diff(plain[0], metered[0]); diff != "" {
				t.Errorf("metering makes a difference (-plain +metered):\n%s", diff)
			}
		})
	}
}

// How long it takes to read and to meter a module that is made of Go.
func BenchmarkRewrite(b *testing.B) {
	for name, binary := range shipped(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(binary)))
			for b.Loop() {
				rewrite(b, binary)
			}
		})
	}
}

// How long a decision about 10,000 executors takes, plain and metered.
func BenchmarkDecide(b *testing.B) {
	for name, binary := range shipped(b) {
		encoded := view(b, binary, 10_000)
		metered := rewrite(b, binary)
		for _, form := range []string{"plain", "metered"} {
			b.Run(name+"/"+form, func(b *testing.B) {
				e := newEngine(b, compiler())
				i := e.instantiate(b, binary, nil)
				if form == "metered" {
					i = e.instantiate(b, metered.Wasm, metered)
				}
				c := i.begin(b, encoded)
				*i.tank = tank{budget: 1 << 60}
				f := i.ExportedFunction(c.name)
				for b.Loop() {
					if _, err := f.Call(context.Background(), c.args...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
