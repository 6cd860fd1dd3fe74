package wasm_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

func repeat(n int, instructions ...[]byte) []byte { return slices.Repeat(Code(instructions...), n) }

// function returns a module with one function.
func function(locals int, code ...[]byte) Module {
	return Module{Functions: []Function{{Export: "f", Locals: slices.Repeat([]wasm.ValueType{wasm.I32}, locals), Code: Code(code...)}}}
}

func nested(n int, open func(inner []byte) []byte) (code []byte) {
	for range n {
		code = open(code)
	}
	return code
}

// refusal is a module and what must be said about it.
type refusal struct {
	module []byte
	want   string
}

// What cannot be hosted is refused with one sentence that says what is wrong, where, and what to do.
func TestRefusals(t *testing.T) {
	for _, all := range []map[string]refusal{misshapen(), oversized(), miscoded()} {
		for name, test := range all {
			t.Run(name, func(t *testing.T) {
				limits := wasm.DefaultLimits()
				limits.Functions = 5_000
				_, err := wasm.Parse(test.module, limits)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want %q in it", err, test.want)
				}
				if text := err.Error(); !strings.HasPrefix(text, "it") || strings.Contains(text, "\n") {
					t.Errorf("it is no sentence about the module: %q", text)
				}
			})
		}
	}
}

// raw returns a module with one section.
func raw(id byte, content ...byte) Module { return Module{Raw: map[byte][]byte{id: content}} }

// named calls a module's first function main.decide.
func named(m Module) Module {
	m.Custom = []wasm.Custom{{Name: "name", Content: slices.Concat([]byte{1}, Sized(slices.Concat(U32(1), U32(0), Text("main.decide"))))}}
	return m
}

// misshapen returns modules that have what they must not have, or not what they must.
func misshapen() map[string]refusal {
	importing := func(kind byte, rest ...byte) Module {
		return raw(2, slices.Concat(U32(1), Text("env"), Text("thing"), []byte{kind}, rest)...)
	}
	global := func(typ wasm.ValueType, init ...byte) Module {
		return Module{Globals: []wasm.Global{{Type: typ, Mutable: true, Init: init}}}
	}
	return map[string]refusal{
		"nothing":              {nil, "it is not a WebAssembly module: it is empty"},
		"text":                 {[]byte("#!/bin/sh\necho hello\n"), "it is not a WebAssembly module: the first bytes are not those of one"},
		"a component":          {[]byte("\x00asm\x0d\x00\x01\x00"), "components are not supported, build a core module"},
		"cut short":            {around(nil)[:40], "it is damaged: section "},
		"a section twice":      {append(around(nil), 1, 1, 0), "it is damaged: section 1 is unknown, twice there, or not in its place"},
		"an unknown section":   {append(around(nil), 14, 0), "it is damaged: section 14 is unknown"},
		"a command":            {Module{Functions: []Function{{Export: "_start"}}}.Bytes(), "it is built as a command, which runs once and ends: build with -buildmode=c-shared (Go) or as a reactor"},
		"a start section":      {Module{Functions: []Function{{}}, Raw: map[byte][]byte{8: {0}}}.Bytes(), "it has a start section, which runs before the host can bound it: export _initialize instead"},
		"threads":              {raw(5, 1, 3, 1, 2).Bytes(), "made for threads"},
		"64 bits":              {raw(5, 1, 4, 1).Bytes(), "addresses of 64 bits"},
		"two memories":         {raw(5, 2, 0, 1, 0, 1).Bytes(), "it has 2 memories, one is allowed"},
		"two tables":           {raw(4, 2, 0x70, 0, 1, 0x70, 0, 1).Bytes(), "it has 2 tables, one is allowed"},
		"an imported memory":   {importing(2, 0, 1).Bytes(), "it imports env.thing, which is no function: memories, tables and globals must be its own"},
		"an imported table":    {importing(1, 0x70, 0, 1).Bytes(), "it imports env.thing, which is no function"},
		"an imported global":   {importing(3, wasm.I32, 1).Bytes(), "it imports env.thing, which is no function"},
		"a mutable vector":     {global(wasm.V128, slices.Concat([]byte{0xfd, 12}, make([]byte, 16))...).Bytes(), "its global 0 is a mutable v128, which the host cannot put back"},
		"a mutable reference":  {global(wasm.FuncRef, 0xd0, 0x70).Bytes(), "its global 0 is a mutable funcref"},
		"an export twice":      {Module{Functions: []Function{{Export: "f"}, {Export: "f"}}}.Bytes(), "the export f is there twice"},
		"an export of nothing": {Module{Exports: []wasm.Export{{Name: "m", Kind: wasm.KindMemory}}}.Bytes(), "the export m is the memory 0 of 0"},
	}
}

// oversized returns modules that are more than the limits allow.
func oversized() map[string]refusal {
	labels := make([]int, 1_001)
	table := Block(Nothing, I32(0), BrTable(labels...))
	wide := slices.Repeat([]wasm.ValueType{wasm.I32}, 200)
	return map[string]refusal{
		"too big":             {make([]byte, 8<<20+1), "it has more than 8388608 bytes, the limit for a module"},
		"too much memory":     {Module{Memory: &wasm.Bounds{Least: 1_025}}.Bytes(), "it starts with 1025 pages of memory, more than the limit of 1024 (67108864 bytes)"},
		"too big a table":     {Module{Table: &wasm.Bounds{Least: 1 << 27}}.Bytes(), "it has a table of 134217728 entries, more than the limit of 65536"},
		"too many functions":  {Module{Functions: make([]Function, 5_001)}.Bytes(), "it has 5001 functions, more than the limit of 5000: leave out what is not used"},
		"too many results":    {Module{Types: []wasm.Signature{{Results: wide}}}.Bytes(), "a type has 200 results, more than the limit of 128"},
		"a huge body":         {named(function(0, repeat(70_000, I32(1), Drop))).Bytes(), "its function 0 (main.decide) at offset 0x22 has a body of 210001 bytes, more than the limit of 131072: split it"},
		"many locals":         {function(1_001).Bytes(), "has 1001 locals, more than the limit of 1000: split it"},
		"endless locals":      {raw(10, slices.Concat([]byte{1}, Sized(slices.Concat(U32(1), U32(1<<32-1), []byte{wasm.I32, 0x0b})))...).With(Function{}).Bytes(), "has 4294967295 locals"},
		"10,000 ifs inside":   {function(0, nested(10_000, func(in []byte) []byte { return Code(I32(1), If(Nothing, in)) })).Bytes(), "has 1025 blocks inside of each other"},
		"10,000 blocks":       {function(0, repeat(10_000, Block(Nothing))).Bytes(), "has 4097 blocks at offset"},
		"2,000 loops":         {function(0, repeat(2_000, Loop(Nothing))).Bytes(), "has 1025 loops at offset"},
		"branches and locals": {function(900, Block(Nothing, bytes.Repeat(slices.Concat(Get(0), BrIf(0)), 400))).Bytes(), "values that branches may bring (locals times targets)"},
		"loops and locals":    {function(990, nested(60, func(in []byte) []byte { return Loop(Nothing, in) })).Bytes(), "values that come together at blocks"},
		"a br_table bomb":     {function(0, repeat(100, table)).Bytes(), "has 5000 targets of br_table at offset"},
		"a big br_table":      {function(0, Block(Nothing, I32(0), BrTable(make([]int, 3_000)...))).Bytes(), "has 2999 targets in one br_table at offset"},
		"a call bomb":         {Module{Functions: []Function{{Signature: wasm.Signature{Params: wide[:128], Results: wide[:128]}, Code: repeat(1_000, Call(0))}}}.Bytes(), "has 131328 values that calls and branches carry"},
		"branches in all":     {Module{Functions: slices.Repeat([]Function{{Code: repeat(4, table)}}, 70)}.Bytes(), "have 264000 targets of br_table, more than the limit of 262144"},
	}
}

// miscoded returns modules whose functions are wrong.
func miscoded() map[string]refusal {
	return map[string]refusal{
		"changes its table":   {named(Module{Functions: []Function{{Code: Op(0x26, 0)}}}).Bytes(), "its function 0 (main.decide) at offset 0x17 changes a table"},
		"a number too big":    {function(0, Op(0x41, 0xff, 0xff, 0xff, 0xff, 0x4f), Drop).Bytes(), "a number is too long or too big"},
		"an unknown block":    {function(0, Op(0x02, 0x64, 0x0b)).Bytes(), "the type of values 0x64 is unknown"},
		"an unknown select":   {function(0, Unreachable, Op(0x1c, 1, 0)).Bytes(), "the type of values 0x00 is unknown"},
		"an unknown local":    {function(1, Get(1), Drop).Bytes(), "the local 1 is named, there are 1"},
		"an unknown label":    {function(0, Br(1)).Bytes(), "the block 1 is named, there are 1"},
		"an unknown function": {function(0, Call(1)).Bytes(), "the function 1 is named, there are 1"},
		"no memory":           {function(0, I32(0), LoadI32, Drop).Bytes(), "the memory 0 is named, there are 0"},
		"a body without end":  {raw(10, 1, 3, 0, 0x02, 0x40).With(Function{}).Bytes(), "its code does not end"},
		"code after the end":  {function(0, Op(0x0b, 0x01)).Bytes(), "there is code after its end"},
		"an else alone":       {function(0, Op(0x05)).Bytes(), "an else has no if"},
	}
}

// Names that a module gives are shown as one short line, whatever they are.
func TestNamesAreShownInOneLine(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, name := range []string{"a\nb", "\x1b[31mred", long} {
		m := Module{Imports: []wasm.Offer{{Module: name, Name: name}}}
		parsed, err := wasm.Parse(m.Bytes(), wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		gaps := parsed.CompareImports(nil)
		if len(gaps) != 1 || strings.ContainsAny(gaps[0].Error(), "\n\x1b") || len(gaps[0].Error()) > 500 {
			t.Errorf("shown as %q", gaps)
		}
	}
}

// What a module needs and offers is held against what a host offers and wants, a sentence for each difference.
func TestBordersAreCompared(t *testing.T) {
	i32 := []wasm.ValueType{wasm.I32}
	log := wasm.Offer{Module: "retinue", Name: "log", Signature: wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}}}
	exit := wasm.Offer{Module: "wasi", Name: "exit", Signature: wasm.Signature{Params: i32}}
	binary := Module{
		Imports:   []wasm.Offer{{Module: "retinue", Name: "log", Signature: wasm.Signature{Params: i32}}, exit, {Module: "env", Name: "now", Signature: wasm.Signature{Results: i32}}},
		Functions: []Function{{Export: "abi", Signature: wasm.Signature{Results: i32}, Code: I32(1)}},
		Memory:    &wasm.Bounds{Least: 1},
	}.Bytes()
	m, err := wasm.Parse(binary, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		gaps []error
		want []string
	}{
		{m.CompareImports([]wasm.Offer{log, exit}), []string{
			"it imports retinue.log as (i32) → (), the host offers it as (i32, i32, i32) → ()",
			"it imports env.now, which the host does not offer; it offers retinue: log; wasi: exit",
		}},
		{m.CompareExports([]wasm.Want{
			{Name: "memory", Kind: wasm.KindMemory},
			{Name: "abi", Signature: wasm.Signature{Params: i32, Results: []wasm.ValueType{wasm.I64}}},
			{Name: "alloc"},
			{Name: "configure", Optional: true},
			{Name: "abi", Kind: wasm.KindGlobal},
		}), []string{
			"its export abi is () → i32, it must be (i32) → i64",
			"it lacks the export alloc",
			"its export abi is a function, it must be a global",
		}},
	} {
		var got []string
		for _, gap := range test.gaps {
			got = append(got, gap.Error())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// What a module holds can be read off: custom sections, shape, names.
func TestModuleIsRead(t *testing.T) {
	binary := Module{
		Functions: []Function{{Export: "f", Locals: []wasm.ValueType{wasm.I64}, Code: Code(Loop(Nothing, Block(Nothing, I32(2), BrTable(0, 1, 2))), Loop(Nothing))}},
		Memory:    &wasm.Bounds{Least: 2, Most: 9, Bounded: true},
		Data:      []Data{{Passive: true, Bytes: []byte("abc")}, {At: 9, Bytes: []byte("de")}},
		Custom:    []wasm.Custom{{Name: "retinue.policy", Content: []byte("{}")}, {Name: "name", Content: slices.Concat([]byte{1}, Sized(slices.Concat(U32(1), U32(0), Text("decide"))))}},
	}.Bytes()
	m, err := wasm.Parse(binary, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := wasm.Shape{
		Body: 17, Nesting: 2, Locals: 1, Targets: 2, FunctionTargets: 2, ModuleTargets: 2, FunctionBlocks: 3, ModuleBlocks: 3, FunctionLoops: 2,
		FunctionJoins: 3, ModuleJoins: 3, FunctionEdges: 3, ModuleEdges: 3, Instructions: 9,
	}
	if m.Shape != want {
		t.Errorf("shape %+v, want %+v", m.Shape, want)
	}
	manifest, there := m.Section("retinue.policy")
	if !there || !bytes.Equal(manifest, []byte("{}")) || m.NameOf(0) != "decide" || m.Size != len(binary) || m.Data[0] != (wasm.Segment{Passive: true, Size: 3}) ||
		m.Memories[0] != (wasm.Bounds{Least: 2, Most: 9, Bounded: true}) {
		t.Errorf("read %q, %+v", manifest, m)
	}
}
