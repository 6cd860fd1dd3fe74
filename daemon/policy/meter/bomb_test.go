package meter

import (
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// bombs are functions that the static check just lets through, each as hard to compile as it can be.
func bombs() map[string]Module {
	locals := func(n int) []wasm.ValueType { return slices.Repeat([]wasm.ValueType{wasm.I32}, n) }
	sum := func(n int) (code []byte) { // reads all of n locals
		for i := range n {
			code = append(code, Code(Get(0), Get(1+i), AddI32, Set(0))...)
		}
		return code
	}
	nested := func(loops, n int) Module {
		var body []byte
		for i := range n {
			body = append(body, Code(Get(0), Get(1+i), AddI32, Set(1+i))...)
		}
		for range loops {
			body = Loop(Nothing, body, Get(0), BrIf(0))
		}
		return one(i32ToI32, locals(n), body, Get(0))
	}
	after := func(blocks, n int, block func(i int) []byte) Module {
		var body []byte
		for i := range blocks {
			body = append(body, block(i%n)...)
		}
		return one(i32ToI32, locals(n), body, sum(n), Get(0))
	}
	branch := func(i int) []byte { return Code(Get(0), If(Nothing, Get(0), Set(1+i))) }
	many := wasm.Signature{Params: locals(128), Results: locals(128)}
	return map[string]Module{
		"10 loops inside of each other, 990 locals": nested(10, 990),
		"20 loops inside of each other, 300 locals": nested(20, 300),
		"1,000 ifs, 60 locals":                      after(1_000, 60, branch),
		"65 ifs, 990 locals":                        after(65, 990, branch),
		"4,000 ifs, 14 locals":                      after(4_000, 14, branch),
		"1,020 loops":                               after(1_020, 1, func(i int) []byte { return Loop(Nothing, Get(0), Set(1+i)) }),
		"500 calls with 256 values":                 {Functions: []Function{{Export: "f", Signature: many, Code: Code(sumless(128), repeat(500, Call(0)))}}},
		"10,000 values over calls":                  one(i32ToI32, nil, repeat(10_000, Get(0), Call(0)), repeat(9_999, AddI32)),
		"21,000 loads":                              one(i32ToI32, nil, repeat(21_000, Get(0), LoadI32, Drop), Get(0)),
	}
}

func sumless(n int) (code []byte) {
	for i := range n {
		code = append(code, Get(i)...)
	}
	return code
}

// How long the hardest functions take to compile, metered: the limits are what keeps them short.
func BenchmarkCompileBombs(b *testing.B) {
	for name, m := range bombs() {
		b.Run(name, func(b *testing.B) {
			metered := rewrite(b, m.Bytes())
			for b.Loop() {
				e := newEngine(b, compiler())
				if err := compile(b.Context(), e.Runtime, metered.Wasm); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The static check lets the hardest functions through, and so what they are is what the limits allow.
func TestBombsAreWithinLimits(t *testing.T) {
	for name, m := range bombs() {
		if _, err := wasm.Parse(m.Bytes(), wasm.DefaultLimits()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
