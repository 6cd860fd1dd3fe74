package meter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
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

// What metering costs, as the ratio of metered to plain: the median of ten pairs, for the shipped policies with 10,000 executors, and for
// a loop as a C compiler makes it.
func BenchmarkRatio(b *testing.B) {
	scan := scanning().Bytes()
	forms := map[string]func(binary []byte, metered *Metered) func(){
		"scan": func(binary []byte, metered *Metered) func() {
			return newEngine(b, compiler()).instantiate(b, binary, metered).running(b, call{"f", []uint64{100}})
		},
	}
	binaries := shipped(b)
	for name, plain := range binaries {
		encoded := view(b, plain, 10_000)
		forms[name] = func(binary []byte, metered *Metered) func() {
			i := newEngine(b, compiler()).instantiate(b, binary, metered)
			return i.running(b, i.begin(b, encoded))
		}
	}
	binaries["scan"] = scan
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		b.Run(name, func(b *testing.B) {
			metered := rewrite(b, binaries[name])
			plainly, paying := forms[name](binaries[name], nil), forms[name](metered.Wasm, metered)
			var ratios []float64
			for b.Loop() {
				for range 10 {
					ratios = append(ratios, float64(duration(paying))/float64(duration(plainly)))
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
		})
	}
}

// running returns what makes a call a few times.
func (i *instance) running(b *testing.B, c call) func() {
	f := i.ExportedFunction(c.name)
	return func() {
		*i.tank = tank{budget: plenty}
		for range 20 {
			if _, err := f.Call(context.Background(), c.args...); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func duration(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// scanning goes over rows of 16 bytes, so many times, and adds up what it finds.
func scanning() Module {
	m := one(i32ToI32, []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}, Loop(Nothing,
		I32(0), Set(1), Loop(Nothing,
			Get(1), LoadI32, Get(1), Op(0x28, 2, 4), AddI32, Tee(2), I32(100), LessI32, If(Nothing, Get(2), I32(3), MulI32, Set(2)),
			Get(1), Op(0x28, 2, 8), Get(2), AddI32, Get(3), AddI32, Set(3),
			Get(1), I32(16), AddI32, Tee(1), I32(16_000), LessI32, BrIf(0)),
		Get(0), I32(1), SubI32, Tee(0), BrIf(0)), Get(3))
	return m
}
