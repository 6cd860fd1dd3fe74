package meter

import (
	"slices"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// hostiles are modules that pass the static check, and whose f would run for far longer than anybody waits.
func hostiles() map[string]Module {
	forever := func(code ...[]byte) Module {
		m := one(nothing, []wasm.ValueType{wasm.I32, wasm.I64}, Loop(Nothing, Code(code...), Br(0)))
		m.Memory = &wasm.Bounds{Least: 1_024}
		return m
	}
	var calls Module
	for i := range 30 {
		next := Code(Call(i+1), Call(i+1))
		calls.Functions = append(calls.Functions, Function{Code: next})
	}
	calls.Functions[0].Export = "f"
	calls.Functions = append(calls.Functions, Function{})
	initialize := forever()
	initialize.Functions[0].Export = "_initialize"
	initialize.Functions = append(initialize.Functions, Function{Export: "f", Code: Call(0)})
	chase := forever(I32(64), repeat(43_000, LoadI32), Drop)
	chase.Functions = append(chase.Functions, Function{Export: "prepare", Locals: []wasm.ValueType{wasm.I32}, Code: Code(
		Loop(Nothing, Get(0), Get(0), I32(64*618983), AddI32, I32(1<<26-64), Op(0x71), Tee(0), StoreI32, Get(0), BrIf(0)))}) // a chain through all of memory
	fresh := one(nothing, []wasm.ValueType{wasm.I32}, I32(60), Grow, Drop,
		Loop(Nothing, repeat(1_000, Get(0), Get(0), StoreI32, Get(0), I32(4_096), AddI32, Tee(0), I32(1<<22-1), Op(0x71), Set(0)), Br(0)))
	fresh.Memory = &wasm.Bounds{Least: 4}
	recursive := one(nothing, nil, I32(0), BrIf(0), Call(0), Call(0))
	return map[string]Module{
		"exponential calls":      calls,
		"endless loop":           forever(),
		"loop in _initialize":    initialize,
		"fills of 48 MiB":        forever(I32(0), I32(1), I32(48<<20), Fill),
		"copies of 40 MiB":       forever(I32(5), I32(0), I32(40<<20), Copy),
		"fills of nothing":       forever(repeat(10_000, I32(0), I32(0), I32(0), Fill)),
		"growing by nothing":     forever(repeat(10_000, I32(0), Grow, Drop)),
		"growing by too much":    forever(repeat(10_000, I32(-1), Grow, Drop)),
		"130 KB of divisions":    one(nothing, []wasm.ValueType{wasm.I64}, Loop(Nothing, repeat(13_000, I64(-3), Get(0), I64(1), Op(0x84, 0x82), Set(0)), Br(0))),
		"conversions of vectors": one(nothing, []wasm.ValueType{wasm.V128}, Loop(Nothing, repeat(16_000, Get(0), Op(0xfd, 0xfd, 1), Set(0)), Br(0))),
		"loads that miss":        chase,
		"memory never touched":   fresh,
		"recursion":              recursive,
		"recursion by the table": {Types: []wasm.Signature{nothing}, Table: &wasm.Bounds{Least: 1}, Elements: []uint32{0}, Functions: []Function{{Export: "f", Code: Code(I32(0), CallIndirect(0))}}},
		"branches nobody sees":   forever(repeat(2_000, Get(0), I32(0x41c64e6d), MulI32, I32(12345), AddI32, Tee(0), I32(29), Op(0x76), Block(Nothing, Block(Nothing, I32(1), BrTable(0, 1))), Drop)),
	}
}

func repeat(n int, instructions ...[]byte) []byte {
	return slices.Repeat(Code(instructions...), n)
}

// budget is what a hostile module may burn.
const budget = 100_000

// Whatever a module does, it is stopped when its fuel is used up or its calls are too deep, at the same place on both engines; between two
// refills it never owes more than what one check charges, which is a chunk at most, or what it grew by.
func TestHostileModulesAreStopped(t *testing.T) {
	for name, m := range hostiles() {
		t.Run(name, func(t *testing.T) {
			binary := m.Bytes()
			metered := rewrite(t, binary)
			owed := int32(chunk>>bytesPerTick + 2)
			if name == "memory never touched" {
				owed = 60<<pageTicks + 2 // growing is one step
			}
			var ends []outcome
			for _, config := range engines {
				i := newEngine(t, config()).instantiate(t, metered.Wasm, metered)
				i.prepare()
				o := i.burn(t, func(left int32) {
					if left < -owed {
						t.Errorf("it owes %d ticks", -left)
					}
				})
				ends = append(ends, o)
			}
			want := errSpent
			if strings.HasPrefix(name, "recursion") {
				want = errTooDeep
			}
			if !strings.HasPrefix(ends[0].Err, want.Error()) {
				t.Errorf("it ended with %q, want %q", ends[0].Err, want)
			}
			if ends[0].Ticks != ends[1].Ticks || ends[0].Memory != ends[1].Memory || ends[0].Err != ends[1].Err {
				t.Errorf("the engines differ: %+v and %+v", ends[0], ends[1])
			}
		})
	}
}

// prepare sets up what f works on.
func (i *instance) prepare() {
	if i.ExportedFunction("prepare") != nil {
		i.do(call{"prepare", nil})
	}
}

// burn calls f with a bounded budget.
func (i *instance) burn(t testing.TB, onFill func(int32)) outcome {
	t.Helper()
	i.tank.onFill = onFill
	return i.within(budget, call{"f", nil})
}

// Calls may be as deep as configured, and no deeper, however they return; functions that call nothing do not count.
func TestDepthIsCounted(t *testing.T) {
	m := recursion()
	metered := rewrite(t, m.Bytes())
	for _, config := range engines {
		i := newEngine(t, config()).instantiate(t, metered.Wasm, metered)
		limit := uint64(DefaultConfig().CallDepth)
		for _, test := range []struct {
			calls uint64
			want  string
		}{{limit - 1, ""}, {limit, errTooDeep.Error()}, {limit - 1, ""}, {1 << 31, errTooDeep.Error()}} {
			if o := i.do(call{"f", []uint64{test.calls}}); !strings.HasPrefix(o.Err, test.want) || (o.Err == "") != (test.want == "") {
				t.Errorf("%d calls: %q, want %q", test.calls+1, o.Err, test.want)
			}
		}
	}
}
