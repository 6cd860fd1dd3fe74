package meter

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// grammar draws functions that are valid and end: loops count, and functions call only those before them.
type grammar struct {
	*rapid.T
	callable []wasm.Signature // of the functions before
	results  []wasm.ValueType
	labels   int // blocks that may be left, from the innermost one
	depth    int // of expressions and statements inside of each other
	loops    int // open ones, each with a counter of its own
	room     int // statements that may still be drawn
}

// The locals of every function that is drawn: parameters, free ones, and the counters of loops.
const (
	localA = iota // i32
	localB        // i64
	localC        // i32
	localD        // i64
	counters
	maxLoops = 2
)

var drawnLocals = []wasm.ValueType{wasm.I32, wasm.I64, wasm.I32, wasm.I32}

func (g *grammar) pick(n int, what string) int { return rapid.IntRange(0, n-1).Draw(g.T, what) }

// i32 draws an expression of that type.
func (g *grammar) i32() []byte {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 {
		return I32(rapid.Int32().Draw(g.T, "constant"))
	}
	switch g.pick(12, "i32") {
	case 0, 1:
		return Get(localA)
	case 2:
		return Get(localC)
	case 3:
		return I32(int32(g.pick(100, "small")))
	case 4, 5:
		op := rapid.SampledFrom([]byte{0x46, 0x48, 0x6a, 0x6b, 0x6c, 0x6d, 0x70, 0x71, 0x72, 0x74, 0x77}).Draw(g.T, "operation") // divisions trap, too
		return Code(g.i32(), g.i32(), Op(op))
	case 6:
		return Code(g.i64(), Op(0xa7))
	case 7:
		return Code(g.i32(), I32(0xffff), Op(0x71), LoadI32)
	case 8:
		return Code(g.i32(), IfElse(GivesI32, g.within(1, g.i32), g.within(1, g.i32)))
	case 9:
		return Size
	case 10:
		return g.call(wasm.I32)
	}
	return GetGlobal(0)
}

// i64 draws an expression of that type.
func (g *grammar) i64() []byte {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 {
		return I64(rapid.Int64().Draw(g.T, "constant"))
	}
	switch g.pick(7, "i64") {
	case 0:
		return Get(localB)
	case 1:
		return Get(localD)
	case 2, 3:
		op := rapid.SampledFrom([]byte{0x7c, 0x7d, 0x7e, 0x7f, 0x83, 0x85, 0x89}).Draw(g.T, "operation")
		return Code(g.i64(), g.i64(), Op(op))
	case 4:
		return Code(g.i32(), Op(0xac))
	case 5:
		return g.call(wasm.I64)
	}
	return GetGlobal(1)
}

// within draws inside of blocks that may be left.
func (g *grammar) within(blocks int, draw func() []byte) []byte {
	g.labels += blocks
	defer func() { g.labels -= blocks }()
	return draw()
}

// call draws a call whose last result has a type, or a constant if there is none to call.
func (g *grammar) call(typ wasm.ValueType) []byte {
	if len(g.callable) == 0 {
		return Code(g.constants([]wasm.ValueType{typ}))
	}
	f := g.pick(len(g.callable), "callee")
	code := Code(g.i32(), g.i64(), Call(f))
	if f == 0 && g.pick(2, "indirect") == 0 {
		code = Code(g.i32(), g.i64(), I32(int32(g.pick(3, "entry"))), CallIndirect(0)) // the last entry is empty
	}
	for range g.callable[f].Results {
		code = append(code, Drop...)
	}
	return append(code, g.constants([]wasm.ValueType{typ})...)
}

func (g *grammar) constants(types []wasm.ValueType) (code []byte) {
	for _, t := range types {
		if t == wasm.I32 {
			code = append(code, I32(rapid.Int32().Draw(g.T, "constant"))...)
		} else {
			code = append(code, I64(rapid.Int64().Draw(g.T, "constant"))...)
		}
	}
	return code
}

// statements draws some, which leave the stack as it is.
func (g *grammar) statements() (code []byte) {
	g.depth++
	defer func() { g.depth-- }()
	for range g.pick(5, "statements") {
		if g.room--; g.room < 0 || g.depth > 6 {
			return code
		}
		code = append(code, g.statement()...)
	}
	return code
}

func (g *grammar) statement() []byte {
	switch g.pick(16, "statement") {
	case 0:
		return Code(g.i32(), Set(localA))
	case 1:
		return Code(g.i64(), Set(localB))
	case 2:
		return Code(g.i32(), Set(localC), g.i64(), Set(localD))
	case 3:
		return Code(g.i32(), SetGlobal(0), g.i64(), SetGlobal(1))
	case 4:
		return Code(g.i32(), I32(0x1ffff), Op(0x71), g.i32(), StoreI32) // past the end, sometimes
	case 5:
		return Code(g.i32(), If(Nothing, g.within(1, g.statements)))
	case 6:
		return Code(g.i32(), IfElse(Nothing, g.within(1, g.statements), g.within(1, g.statements)))
	case 7:
		return Block(Nothing, g.within(1, g.statements))
	case 8:
		return g.loop()
	case 9:
		return Code(g.i32(), BrIf(g.pick(g.labels, "label")))
	case 10:
		return g.table()
	case 11:
		return Code(g.i32(), If(Nothing, g.constants(g.results), Return))
	case 12:
		return g.bulk()
	case 13:
		return Code(Get(localA), straight(g.pick(150, "long")), Set(localA))
	case 14:
		return Code(g.i32(), I32(1), Op(0x71), Grow, Set(localC))
	}
	return Code(g.call(wasm.I32), Drop)
}

// loop draws a loop that counts. Nothing else sets its counter, and branches leave the block around it.
func (g *grammar) loop() []byte {
	if g.loops == maxLoops {
		return nil
	}
	counter := counters + g.loops
	g.loops++
	defer func() { g.loops-- }()
	inner := g.labels
	g.labels = 0 // a branch to the head would not count
	body := Block(Nothing, g.within(1, g.statements))
	g.labels = inner
	return Code(I32(0), Set(counter), Block(Nothing, Loop(Nothing, body, Get(counter), I32(1), AddI32, Tee(counter), I32(int32(1+g.pick(3, "times"))), LessI32, BrIf(0))))
}

func (g *grammar) table() []byte {
	var labels []int
	for range 1 + g.pick(4, "labels") {
		labels = append(labels, g.pick(3, "label"))
	}
	// Three blocks of its own, so that there is always somewhere to go.
	return Block(Nothing, Block(Nothing, Block(Nothing, g.i32(), BrTable(labels...)), g.within(2, g.statements)), g.within(1, g.statements))
}

func (g *grammar) bulk() []byte {
	op := rapid.SampledFrom([][]byte{Fill, Copy, Init(1)}).Draw(g.T, "operation")
	limit := int32(0x3ffff) // past the end, and more than a chunk, sometimes
	return Code(g.i32(), I32(limit), Op(0x71), g.i32(), I32(limit), Op(0x71), g.i32(), I32(limit>>g.pick(12, "shift")), Op(0x71), op)
}

// drawModule draws a module with a function f (i32, i64) → ….
func drawModule(t *rapid.T) Module {
	m := Module{
		Memory:  &wasm.Bounds{Least: 3, Most: 6, Bounded: true},
		Table:   &wasm.Bounds{Least: 3},
		Globals: []wasm.Global{{Type: wasm.I32, Mutable: true, Init: I32(3)}, {Type: wasm.I64, Mutable: true, Init: I64(-4)}},
		Data:    []Data{{At: 7, Bytes: pattern(5_000)}, {Passive: true, Bytes: pattern(rapid.SampledFrom([]int{10, 1_000, chunk + 100}).Draw(t, "segment"))}},
		Types:   []wasm.Signature{{Params: []wasm.ValueType{wasm.I32, wasm.I64}}},
	}
	n := rapid.IntRange(1, 3).Draw(t, "functions")
	g := &grammar{T: t}
	for i := range n {
		results := rapid.SliceOfN(rapid.SampledFrom([]wasm.ValueType{wasm.I32, wasm.I64}), 0, 3).Draw(t, "results")
		if i == 0 {
			results = nil // it is in the table
		}
		s := wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I64}, Results: results}
		*g = grammar{T: t, callable: g.callable, results: results, room: 15}
		f := Function{Signature: s, Locals: drawnLocals, Code: g.function()}
		m.Functions = append(m.Functions, f)
		g.callable = append(g.callable, s)
	}
	m.Functions[n-1].Export = "f"
	m.Elements = []uint32{0, 0}
	return m
}

// function draws a body: branches to the function's end carry its results, so those are made of a block that is left without any.
func (g *grammar) function() []byte {
	body := Block(Nothing, g.within(1, g.statements))
	if g.pick(2, "how it ends") == 0 {
		return slices.Concat(body, g.constants(g.results), Return)
	}
	return slices.Concat(body, g.constants(g.results), Br(0))
}

// Whatever a function does, it does the same with a meter.
func TestRandomFunctionsDoTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		binary := drawModule(rt).Bytes()
		var asked []call
		for range 3 {
			asked = append(asked, call{"f", []uint64{uint64(rapid.Uint32().Draw(rt, "a")), rapid.Uint64().Draw(rt, "b")}})
		}
		agree(t, binary, asked...)
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}
