package meter

import (
	"maps"
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// However a function goes forward without a loop or a call, it pays a tick for every so many instructions, and not many more than that of the
// heaviest way.
func TestLongWaysArePaid(t *testing.T) {
	const unit = 4 // what straight does for each of its n
	for name, test := range map[string]struct {
		code   []byte
		weight map[uint64]int // of the way that is gone, by the argument
	}{
		"short":           {Code(Get(0), straight(10)), map[uint64]int{0: 10 * unit}},
		"straight":        {Code(Get(0), straight(5_000)), map[uint64]int{0: 5_000 * unit}},
		"if and else":     {Code(Get(0), IfElse(GivesI32, Code(Get(0), straight(2_000)), Code(Get(0), straight(100))), straight(50)), map[uint64]int{0: 150 * unit, 1: 2_050 * unit}},
		"if":              {Code(Get(0), If(Nothing, Get(0), straight(60), Set(0)), Get(0), straight(60)), map[uint64]int{0: 60 * unit, 1: 120 * unit}},
		"after a return":  {Code(Get(0), If(Nothing, I32(1), Return), Get(0), straight(2_000)), map[uint64]int{0: 2_000 * unit, 1: 4}},
		"if not a return": {Code(Get(0), IfElse(GivesI32, Code(I32(1), Return), Code(Get(0), straight(2_000)))), map[uint64]int{0: 2_000 * unit, 1: 4}},
		"many ifs":        {Code(repeat(400, Get(0), If(Nothing, Get(0), straight(10), Drop)), Get(0)), map[uint64]int{0: 400 * 2, 1: 400 * (3 + 10*unit)}},
		"jumps":           {Code(repeat(400, Block(Nothing, Get(0), straight(5), BrIf(0), Get(0), straight(10), Drop)), Get(0)), map[uint64]int{0: 400 * (3 + 5*unit)}},
		"tables":          {Code(repeat(300, Block(Nothing, Block(Nothing, Get(0), BrTable(0, 1)), Get(0), straight(10), Drop)), Get(0)), map[uint64]int{0: 300 * (12 + 10*unit), 1: 300 * 10}},
		"out of depth":    {Block(GivesI32, Get(0), straight(50), Get(0), BrIf(0), Drop, Get(0), straight(60)), map[uint64]int{1: 52 * unit, 0: 110 * unit}},
		"loads":           {Code(Get(0), repeat(500, Op(0x28, 0, 0))), map[uint64]int{0: 500 * 16}},
	} {
		t.Run(name, func(t *testing.T) {
			heaviest := int64(slices.Max(slices.Collect(maps.Values(test.weight))) / longest)
			for arg, weight := range test.weight {
				o := agree(t, one(i32ToI32, nil, test.code).Bytes(), call{"f", []uint64{arg}})[0]
				if least := int64(weight / longest); o.Ticks < max(least, 1) || o.Ticks > 4*heaviest+3 {
					t.Errorf("f(%d) costs %d ticks for a weight of %d", arg, o.Ticks, weight)
				}
			}
		})
	}
}

// Bulk operations and growing are paid by length.
func TestLengthIsPaid(t *testing.T) {
	specimens := bulk()
	for _, test := range []struct {
		specimen int
		args     []uint64
		ticks    int64 // besides a few
	}{
		{0, []uint64{0, 1, 0}, 0},
		{0, []uint64{0, 1, 64 << 10}, 1 << 10},
		{0, []uint64{0, 1, 3 << 20}, 48 << 10},
		{1, []uint64{9, 1, 2 << 20}, 32 << 10},
		{1, []uint64{0, 1, 2 << 20}, 32 << 10},
		{2, []uint64{0, 1, 1 << 20}, 16 << 10},
		{3, []uint64{0, 0, 960}, 15},
		{4, []uint64{0}, 0},
		{4, []uint64{2}, 2 << 10},
		{4, []uint64{3}, 0}, // cannot be had
		{5, []uint64{1_000}, 1_000 << 10},
	} {
		s := specimens[test.specimen]
		metered := rewrite(t, s.module.Bytes())
		o := newEngine(t, compiler()).instantiate(t, metered.Wasm, metered).do(call{"f", test.args})
		if o.Err != "" || o.Ticks < test.ticks || o.Ticks > test.ticks+20 {
			t.Errorf("%s%v: %d ticks and %q, want %d and a few", s.name, test.args, o.Ticks, o.Err, test.ticks)
		}
	}
}

// What is added bears names that the module does not use, and what bears the meter's name is refused.
func TestNamesDoNotClash(t *testing.T) {
	m := one(nothing, nil)
	m.Exports = []wasm.Export{{Name: "retinue_meter.fuel", Kind: wasm.KindGlobal}, {Name: "retinue_meter.global.0"}, {Name: "retinue_meter__.depth"}}
	binary := m.Bytes()
	metered := rewrite(t, binary)
	if want := []Global{{"retinue_meter___.global.0", wasm.I32}}; metered.Fuel != "retinue_meter___.fuel" || metered.Depth != "retinue_meter___.depth" || !slices.Equal(metered.Globals, want) {
		t.Errorf("the names are %q, %q and %v", metered.Fuel, metered.Depth, metered.Globals)
	}
	agree(t, binary, call{"f", nil}, call{"retinue_meter.global.0", nil})

	m.Imports = []wasm.Offer{{Module: ModuleName, Name: Refill}}
	if _, err := Rewrite(parse(t, m.Bytes()), DefaultConfig()); err == nil || err.Error() != "it imports from retinue_meter, which only the meter may: leave out that import" {
		t.Errorf("error %v", err)
	}
}

// Memory and table end where they are told to, or before.
func TestMostIsWrittenIn(t *testing.T) {
	for _, test := range []struct{ memory, want, table, wantTable wasm.Bounds }{
		{wasm.Bounds{Least: 1}, wasm.Bounds{Least: 1, Most: 1_024, Bounded: true}, wasm.Bounds{Least: 3}, wasm.Bounds{Least: 3, Most: 65_536, Bounded: true}},
		{
			wasm.Bounds{Least: 1, Most: 65_536, Bounded: true},
			wasm.Bounds{Least: 1, Most: 1_024, Bounded: true},
			wasm.Bounds{Most: 1 << 30, Bounded: true},
			wasm.Bounds{Most: 65_536, Bounded: true},
		},
		{wasm.Bounds{Least: 2, Most: 7, Bounded: true}, wasm.Bounds{Least: 2, Most: 7, Bounded: true}, wasm.Bounds{Least: 5, Most: 5, Bounded: true}, wasm.Bounds{Least: 5, Most: 5, Bounded: true}},
	} {
		metered := rewrite(t, Module{Memory: &test.memory, Table: &test.table}.Bytes())
		m, err := wasm.Parse(metered.Wasm, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if m.Memories[0] != test.want || m.Tables[0].Bounds != test.wantTable {
			t.Errorf("%+v and %+v become %+v and %+v", test.memory, test.table, m.Memories[0], m.Tables[0].Bounds)
		}
	}
}

// The functions keep their names, for stack traces; other custom sections go.
func TestFunctionsKeepTheirNames(t *testing.T) {
	m := recursion()
	m.Functions[0].Code = append(m.Functions[0].Code, Unreachable...)
	m.Imports = []wasm.Offer{{Module: "retinue", Name: "log", Signature: threeI32}}
	m.Functions[0].Code = Unreachable
	m.Custom = []wasm.Custom{
		{Name: "producers", Content: []byte("x")},
		{Name: "name", Content: slices.Concat([]byte{1}, Sized(slices.Concat(U32(2), U32(0), Text("log"), U32(1), Text("main.decide"))))},
	}
	metered := rewrite(t, m.Bytes())
	again := parse(t, metered.Wasm)
	if again.NameOf(0) != "log" || again.NameOf(3) != "main.decide" || len(again.Custom) != 1 {
		t.Errorf("the names are %q and %q, and there are %d custom sections", again.NameOf(0), again.NameOf(3), len(again.Custom))
	}
}
