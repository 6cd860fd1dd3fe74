package meter

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// specimen is a module and what is asked of it.
type specimen struct {
	name   string
	module Module
	calls  []call
}

// The types of functions that specimens are made of.
var (
	nothing   = wasm.Signature{}
	takesI32  = wasm.Signature{Params: []wasm.ValueType{wasm.I32}}
	i32ToI32  = wasm.Signature{Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
	threeI32  = wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}}
	i32ToPair = wasm.Signature{Params: []wasm.ValueType{wasm.I32}, Results: []wasm.ValueType{wasm.I32, wasm.I64}}
	pairToI64 = wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I64}, Results: []wasm.ValueType{wasm.I64}}
)

// calling returns calls to f with one argument each.
func calling(args ...uint64) (calls []call) {
	for _, a := range args {
		calls = append(calls, call{"f", []uint64{a}})
	}
	return calls
}

// one returns a module of one function f and what it may need.
func one(s wasm.Signature, locals []wasm.ValueType, code ...[]byte) Module {
	return Module{
		Functions: []Function{{Export: "f", Signature: s, Locals: locals, Code: Code(code...)}},
		Memory:    &wasm.Bounds{Least: 2, Most: 4, Bounded: true},
		Globals:   []wasm.Global{{Type: wasm.I32, Mutable: true, Init: I32(5)}},
		Data:      []Data{{At: 100, Bytes: []byte("the quick brown fox jumps over the lazy dog")}},
	}
}

// control returns specimens of every way to go through a function.
func control() []specimen {
	i32 := []wasm.ValueType{wasm.I32, wasm.I32}
	sum := Code(Get(0), Get(1), AddI32, Set(1))
	return []specimen{
		{"empty", one(nothing, nil), []call{{"f", nil}}},
		{"early return", one(i32ToI32, nil, Get(0), EqzI32, If(Nothing, I32(7), Return), Get(0), I32(1), AddI32), calling(0, 5)},
		{"return with more on the stack", one(i32ToI32, nil, I32(1), I32(2), Get(0), Return), calling(3)},
		{"loop", one(i32ToI32, i32, Loop(Nothing, sum, Get(0), I32(1), SubI32, Tee(0), BrIf(0)), Get(1)), calling(1, 100, 10_000)},
		{"loops in loops", one(i32ToI32, i32, Loop(Nothing, Times(7, 2, Times(5, 1, Get(0), SetGlobal(0))), Get(0), I32(1), SubI32, Tee(0), BrIf(0)), GetGlobal(0)), calling(1, 50)},
		{"br_table", one(i32ToI32, nil, Block(Nothing, Block(Nothing, Block(Nothing, Get(0), BrTable(0, 1, 2, 0)), I32(10), Return), I32(20), Return), I32(30)), calling(0, 1, 2, 3, 1<<32-1)},
		{"br_table to the function", one(i32ToI32, nil, Block(GivesI32, I32(42), Get(0), BrTable(0, 1, 1)), I32(1), AddI32), calling(0, 1, 9)},
		{"br out of the function", one(i32ToI32, nil, Block(Nothing, Get(0), Get(0), BrIf(1), Drop, I32(3), Br(1)), I32(9)), calling(0, 4)},
		{"if and else", one(i32ToI32, nil, Get(0), IfElse(GivesI32, Code(I32(1), Br(0)), I32(2))), calling(0, 1)},
		{"unreachable code", one(i32ToI32, nil, Block(GivesI32, I32(3), Br(0), Loop(Nothing, I32(1), Drop, Br(0)), I32(4), Return)), calling(0)},
		{"traps", one(i32ToI32, nil, I32(1), Get(0), Op(0x6d)), calling(0, 2)},
		{"unreachable", one(nothing, nil, Unreachable), []call{{"f", nil}, {"f", nil}}},
		{"block with parameters", with(one(i32ToI32, nil, Get(0), I64(5), Block(OfType(0), Op(0xa7), AddI32, I64(1)), Drop), i32ToPair, wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I64}, Results: []wasm.ValueType{wasm.I32, wasm.I64}}), calling(1)},
		{"loop with parameters", with(one(i32ToI32, nil, Get(0), Loop(OfType(0), I32(3), AddI32, Tee(0), Get(0), I32(100), LessI32, BrIf(0))), i32ToI32), calling(0, 99, 1000)},
		{"many results", many(), calling(0, 1, 2, 3)},
		{"long straight way", one(i32ToI32, nil, Get(0), straight(3_000)), calling(0, 77)},
		{"long ways that meet", one(i32ToI32, nil, Get(0), Get(0), IfElse(GivesI32, Code(Get(0), straight(100)), Code(Get(0), straight(200))), AddI32, straight(100), Get(0), EqzI32, If(Nothing, straight2(90)), straight(60)), calling(0, 1)},
	}
}

// with replaces the types that a module's blocks use: the last one.
func with(m Module, types ...wasm.Signature) Module {
	m.Types = types[len(types)-1:]
	return m
}

func straight(n int) (code []byte) {
	for i := range n {
		code = append(code, Code(I32(int32(i)), AddI32, I32(3), Op(0x77))...) // rotate
	}
	return code
}

func straight2(n int) []byte { return Code(Get(0), straight(n), Set(0)) }

// many has several results, and gives them back every way there is.
func many() Module {
	caller := wasm.Signature{Params: takesI32.Params, Results: pairToI64.Results}
	return Module{Functions: []Function{
		{Signature: i32ToPair, Code: Code(
			Get(0), I32(1), Op(0x46), If(Nothing, I32(11), I64(12), Return),
			I32(21), I64(22), Get(0), I32(2), Op(0x46), BrIf(0),
			Get(0), EqzI32, If(Nothing, I32(31), I64(32), Br(1)),
			Drop, Drop, I32(9), Call(2), Drop, Get(0), I64(33))},
		{Export: "f", Signature: caller, Code: Code(Get(0), Call(0), Call(3))},
		{Signature: i32ToI32, Code: Code(Get(0))},
		{Signature: pairToI64, Code: Code(Get(0), Op(0xac), Get(1), Op(0x7c))},
	}}
}

// bulk returns specimens of the operations that are paid for by length.
func bulk() []specimen {
	args := func(all ...[3]uint64) (calls []call) {
		for _, a := range all {
			calls = append(calls, call{"f", a[:]})
		}
		return calls
	}
	three := func(op []byte, pages uint32) Module {
		m := one(threeI32, nil, Get(0), Get(1), Get(2), op)
		m.Memory = &wasm.Bounds{Least: pages, Most: 100, Bounded: true}
		m.Functions = append(m.Functions, Function{Export: "mark", Signature: nothing, Locals: []wasm.ValueType{wasm.I32}, Code: Code(
			Loop(Nothing, Get(0), Get(0), I32(0x9e3779b1-1<<32), MulI32, StoreI32, Get(0), I32(4), AddI32, Tee(0), Size, I32(16), Op(0x74), LessI32, BrIf(0)))})
		return m
	}
	mark := []call{{"mark", nil}}
	const all, mib = 48 * wasm.PageSize, 1 << 20
	big := three(Init(1), 48)
	big.Data = append(big.Data, Data{Passive: true, Bytes: pattern(mib + 12_345)})
	small := three(Init(1), 2)
	small.Data = append(small.Data, Data{Passive: true, Bytes: pattern(1_000)})
	return []specimen{
		{"fill", three(Fill, 48), args([3]uint64{0, 1, 0}, [3]uint64{10, 7, 100}, [3]uint64{0, 255, chunk}, [3]uint64{5, 3, chunk + 1}, [3]uint64{1, 300, all - 1}, [3]uint64{1, 9, all},
			[3]uint64{all, 1, 0}, [3]uint64{all + 1, 1, 0}, [3]uint64{all - 8, 1, 9}, [3]uint64{1 << 31, 1, 1 << 31}, [3]uint64{1<<32 - 1, 1, 1<<32 - 1}, [3]uint64{0, 1, 3*chunk + 17})},
		{"copy", three(Copy, 48), append(mark, args([3]uint64{0, 100, 40}, [3]uint64{100, 0, chunk}, [3]uint64{0, 100, 2*chunk + 3}, [3]uint64{100, 0, 2*chunk + 3}, [3]uint64{0, 1, all - 1},
			[3]uint64{1, 0, all - 1}, [3]uint64{7, 7, all - 7}, [3]uint64{chunk, 0, 3 * chunk}, [3]uint64{0, chunk, 3 * chunk}, [3]uint64{chunk - 1, 0, 2*chunk + 1}, [3]uint64{0, 1, all}, [3]uint64{1, 0, all},
			[3]uint64{all, 0, 0}, [3]uint64{0, all + 1, 0}, [3]uint64{0, 1 << 31, 1 << 31}, [3]uint64{1 << 31, 0, 1 << 31})...)},
		{"init of much", big, args([3]uint64{0, 0, 10}, [3]uint64{3, 5, chunk}, [3]uint64{11, 12, mib}, [3]uint64{0, 12_345, mib}, [3]uint64{0, 12_346, mib}, [3]uint64{all - mib, 0, mib}, [3]uint64{all - mib + 1, 0, mib},
			[3]uint64{0, mib + 12_345, 0}, [3]uint64{0, mib + 12_346, 0}, [3]uint64{0, 1, 1<<32 - 1}, [3]uint64{0, 0, mib + 12_345})},
		{"init of little", small, args([3]uint64{0, 0, 1_000}, [3]uint64{9, 999, 1}, [3]uint64{0, 999, 2}, [3]uint64{0, 0, 1 << 31}, [3]uint64{2*wasm.PageSize - 10, 0, 11}, [3]uint64{2*wasm.PageSize - 10, 0, 10})},
		{"grow", one(i32ToI32, nil, Get(0), Grow, Size, I32(8), Op(0x74), Op(0x72)), calling(0, 1, 2, 1, 0, 1<<31, 1<<32-1)},
		{"grow without a most", Module{Memory: &wasm.Bounds{}, Functions: one(i32ToI32, nil, Get(0), Grow, Size, AddI32).Functions}, calling(0, 1, 1_000, 1_000, 23, 1, 65_536)},
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*i>>3 + i>>8)
	}
	return b
}

// calls returns specimens of calls: direct, through the table, deep.
func calls() []specimen {
	table := Module{
		Types: []wasm.Signature{i32ToI32, nothing}, Table: &wasm.Bounds{Least: 4}, Elements: []uint32{1, 2, 0},
		Globals: []wasm.Global{{Type: wasm.I64, Mutable: true, Init: I64(-1)}, {Type: wasm.F64, Init: F64(1.5)}, {Type: wasm.F32, Mutable: true, Init: Op(0x43, 0, 0, 0x80, 0x3f)}},
		Functions: []Function{
			{Export: "f", Signature: i32ToI32, Code: Code(I32(100), Get(0), CallIndirect(0))},
			{Signature: i32ToI32, Code: Code(GetGlobal(0), I64(7), Op(0x7c), SetGlobal(0), Get(0), I32(1), AddI32)},
			{Signature: nothing, Code: Code(Op(0x43, 0, 0, 0, 0x40), SetGlobal(2))},
		},
	}
	listed := table // by expressions, for the table is filled with those, too, and none of them is the first function
	listed.Elements = nil
	listed.Raw = map[byte][]byte{9: Code(U32(2), // segments
		Op(4), I32(1), Op(0x0b), U32(2), Op(0xd2, 1, 0x0b), Op(0xd0, 0x70, 0x0b), // at 1: function 1 and nothing
		Op(2, 0), I32(0), Op(0x0b, 0), U32(1), U32(2))} // at 0 of the table 0: function 2
	listed.Globals = append(slices.Clip(listed.Globals), wasm.Global{Type: wasm.FuncRef, Init: Op(0xd2, 2)})
	return []specimen{
		{"through the table", table, calling(0, 1, 3, 4, 1<<32-1)}, // and not 2, which does not end
		{"segments of expressions", listed, calling(0, 1, 2, 3)},
		{"recursion", recursion(), calling(0, 1, 500, 999)},
		{"references", with(one(i32ToI32, nil, Op(0xd2, 0, 0xd1), Op(0xd0, 0x70, 0xd1), Op(0x6b), Get(0), AddI32), nothing), calling(3)},
		{"fibonacci", one(i32ToI32, nil, Get(0), I32(2), LessI32, If(Nothing, Get(0), Return), Get(0), I32(1), SubI32, Call(0), Get(0), I32(2), SubI32, Call(0), AddI32), calling(1, 2, 15)},
	}
}

// recursion calls itself as often as it is told.
func recursion() Module {
	return one(i32ToI32, nil, Get(0), EqzI32, If(Nothing, I32(1), Return), Get(0), I32(1), SubI32, Call(0), I32(3), AddI32)
}

// numeric returns a specimen for every instruction on numbers, each with its own function.
func numeric() (all []specimen) {
	const i32, i64, f32, f64 = wasm.I32, wasm.I64, wasm.F32, wasm.F64
	operations := []struct {
		first, last byte
		params      []wasm.ValueType
		result      wasm.ValueType
	}{
		{0x45, 0x45, []byte{i32}, i32},
		{0x46, 0x4f, []byte{i32, i32}, i32},
		{0x50, 0x50, []byte{i64}, i32},
		{0x51, 0x5a, []byte{i64, i64}, i32},
		{0x5b, 0x60, []byte{f32, f32}, i32},
		{0x61, 0x66, []byte{f64, f64}, i32},
		{0x67, 0x69, []byte{i32}, i32},
		{0x6a, 0x78, []byte{i32, i32}, i32},
		{0x79, 0x7b, []byte{i64}, i64},
		{0x7c, 0x8a, []byte{i64, i64}, i64},
		{0x8b, 0x91, []byte{f32}, f32},
		{0x92, 0x98, []byte{f32, f32}, f32},
		{0x99, 0x9f, []byte{f64}, f64},
		{0xa0, 0xa6, []byte{f64, f64}, f64},
		{0xa7, 0xa7, []byte{i64}, i32},
		{0xa8, 0xa9, []byte{f32}, i32},
		{0xaa, 0xab, []byte{f64}, i32},
		{0xac, 0xad, []byte{i32}, i64},
		{0xae, 0xaf, []byte{f32}, i64},
		{0xb0, 0xb1, []byte{f64}, i64},
		{0xb2, 0xb3, []byte{i32}, f32},
		{0xb4, 0xb5, []byte{i64}, f32},
		{0xb6, 0xb6, []byte{f64}, f32},
		{0xb7, 0xb8, []byte{i32}, f64},
		{0xb9, 0xba, []byte{i64}, f64},
		{0xbb, 0xbb, []byte{f32}, f64},
		{0xbc, 0xbc, []byte{f32}, i32},
		{0xbd, 0xbd, []byte{f64}, i64},
		{0xbe, 0xbe, []byte{i32}, f32},
		{0xbf, 0xbf, []byte{i64}, f64},
		{0xc0, 0xc1, []byte{i32}, i32},
		{0xc2, 0xc4, []byte{i64}, i64},
	}
	m, asked := Module{}, []call(nil)
	for _, o := range operations {
		for op := int(o.first); op <= int(o.last); op++ {
			name := fmt.Sprintf("%02x", op)
			code := Op(byte(op))
			for i := range o.params {
				code = append(Get(len(o.params)-1-i), code...)
			}
			m.Functions = append(m.Functions, Function{Export: name, Signature: wasm.Signature{Params: o.params, Results: []wasm.ValueType{o.result}}, Code: code})
			for _, n := range []float64{3, -7, 1 << 20} {
				var args []uint64
				for i, p := range o.params {
					args = append(args, bits(p, n+float64(i)))
				}
				asked = append(asked, call{name, args})
			}
		}
	}
	return append(all, specimen{"numbers", m, asked})
}

// bits returns a number as a value of a type.
func bits(typ wasm.ValueType, n float64) uint64 {
	switch typ {
	case wasm.I32:
		return uint64(uint32(int32(n)))
	case wasm.I64:
		return uint64(int64(n))
	case wasm.F32:
		return uint64(math.Float32bits(float32(n)))
	}
	return math.Float64bits(n)
}

// access returns specimens of loads, stores and vectors.
func access() []specimen {
	var loads, vectors []byte
	for op := byte(0x28); op <= 0x35; op++ {
		loads = append(loads, Code(Get(0), Op(op, 0, 100), convert(op), SetGlobal(1), GetGlobal(1), GetGlobal(2), Op(0x85), SetGlobal(2))...)
	}
	for op := byte(0x36); op <= 0x3e; op++ {
		loads = append(loads, Code(Get(0), I32(int32(op)), AddI32, constant(op), Op(op, 0, 8))...)
	}
	scalar := one(i32ToI32, nil, loads, Get(0))
	scalar.Globals = append(scalar.Globals, wasm.Global{Type: wasm.I64, Mutable: true, Init: I64(0)}, wasm.Global{Type: wasm.I64, Mutable: true, Init: I64(0)})
	for op := range 256 {
		vectors = append(vectors, vector(op)...)
	}
	return []specimen{
		{"loads and stores", scalar, calling(0, 3, 2*wasm.PageSize-4, 1<<32-1)},
		{"vectors", one(i32ToI32, []wasm.ValueType{wasm.V128}, Get(0), Op(0xfd, 0, 0, 100), Set(1), vectors, Get(0), Get(1), Op(0xfd, 11, 0, 0x80, 8), Get(0)), calling(0, 17)},
	}
}

// convert makes an i64 of what a load gives.
func convert(load byte) []byte {
	switch {
	case load == 0x2a: // f32
		return Op(0xbc, 0xad)
	case load == 0x2b: // f64
		return Op(0xbd)
	case load == 0x28, load >= 0x2c && load <= 0x2f: // i32
		return Op(0xad)
	}
	return nil
}

// constant gives what a store takes.
func constant(store byte) []byte {
	switch store {
	case 0x38:
		return Op(0x43, 0, 0, 0x80, 0x3f)
	case 0x39:
		return F64(2.5)
	case 0x36, 0x3a, 0x3b:
		return I32(0x12345678)
	}
	return I64(0x123456789abcdef)
}

// vector does an instruction on vectors, with local 1 and to local 1, if it is one of those that are the same shape as many others.
func vector(op int) []byte {
	encoded := append([]byte{0xfd}, U32(op)...)
	v, a := Get(1), Get(0)
	switch {
	case op <= 10 || op == 92 || op == 93: // loads
		return Code(a, encoded, Op(0, 101), v, Op(0xfd, 0x51), Set(1)) // and xor
	case op == 13:
		return Code(v, v, encoded, Op(1, 0, 3, 2, 31, 30, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13), Set(1))
	case op == 14 || op >= 35 && op <= 76 && isBinary(op):
		return Code(v, v, encoded, v, Op(0xfd, 0x51), Set(1))
	case op >= 84 && op <= 87:
		return Code(a, v, encoded, Op(0, 101, 1), Set(1))
	case op >= 88 && op <= 91:
		return Code(a, v, encoded, Op(0, 102, 1))
	case op == 0x4d || op == 0x60 || op == 0x61 || op == 0x62 || op == 0x80 || op == 0x81 || op == 0xa0 || op == 0xa1 || op == 0xc0 || op == 0xc1:
		return Code(v, encoded, Set(1))
	case op == 0x6e || op == 0x71 || op == 0x8e || op == 0x91 || op == 0x95 || op == 0xae || op == 0xb1 || op == 0xb5 || op == 0xce || op == 0xd1 || op == 0xd5:
		return Code(v, I32(3), Op(0xfd, 0x0f), encoded, Set(1)) // with a splat of bytes
	case op == 0x6b || op == 0x6c || op == 0x6d || op == 0x8b || op == 0x8c || op == 0x8d || op == 0xab || op == 0xac || op == 0xad || op == 0xcb || op == 0xcc || op == 0xcd:
		return Code(v, a, encoded, v, Op(0xfd, 0x51), Set(1))
	}
	return nil
}

func isBinary(op int) bool { return op >= 35 && op <= 64 } // comparisons of integers

// everything is the whole corpus.
func everything() (all []specimen) {
	for _, part := range [][]specimen{control(), bulk(), calls(), numeric(), access()} {
		all = append(all, part...)
	}
	return all
}

// A metered module does what the plain one does, traps included, on both engines, and its ticks are the same on both and every time.
func TestMeteringChangesNothing(t *testing.T) {
	for _, s := range everything() {
		t.Run(s.name, func(t *testing.T) {
			for n, o := range agree(t, s.module.Bytes(), s.calls...) {
				if o.Ticks < 1 {
					t.Errorf("call %d costs %d ticks", n, o.Ticks)
				}
			}
		})
	}
}
