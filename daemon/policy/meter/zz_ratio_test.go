package meter

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

func TestZZRatio(t *testing.T) {
	mods := map[string][]byte{}
	for n, b := range shipped(t) { mods[n] = b }
	pairs := map[string][2]func(){}
	for n, b := range mods {
		enc := view(t, b, 10000)
		m := rewrite(t, b)
		fmt.Println(n, len(b), len(m.Wasm))
		mk := func(bin []byte, mm *Metered) func() {
			i := newEngine(t, compiler()).instantiate(t, bin, mm)
			c := i.begin(t, enc)
			*i.tank = tank{budget: 1 << 60}
			f := i.ExportedFunction(c.name)
			return func() { for range 30 { if _, err := f.Call(context.Background(), c.args...); err != nil { t.Fatal(err) } } }
		}
		pairs[n] = [2]func(){mk(b, nil), mk(m.Wasm, m)}
	}
	for n, b := range loops() {
		m := rewrite(t, b)
		mk := func(bin []byte, mm *Metered) func() {
			i := newEngine(t, compiler()).instantiate(t, bin, mm)
			*i.tank = tank{budget: 1 << 60}
			f := i.ExportedFunction("run")
			return func() { if _, err := f.Call(context.Background()); err != nil { t.Fatal(err) } }
		}
		pairs[n] = [2]func(){mk(b, nil), mk(m.Wasm, m)}
	}
	for n, p := range pairs {
		var rs []float64
		var pl time.Duration
		for range 15 {
			a := time.Now(); p[0](); d0 := time.Since(a)
			a = time.Now(); p[1](); d1 := time.Since(a)
			rs = append(rs, float64(d1)/float64(d0)); pl = d0
		}
		slices.Sort(rs)
		m0, m1 := time.Hour, time.Hour
		for range 40 {
			a := time.Now(); p[0](); m0 = min(m0, time.Since(a))
			a = time.Now(); p[1](); m1 = min(m1, time.Since(a))
		}
		fmt.Printf("best %v %v %.3f\n", m0, m1, float64(m1)/float64(m0))
		fmt.Printf("%-10s plain %v ratio %.2f (min %.2f max %.2f)\n", n, pl, rs[len(rs)/2], rs[0], rs[len(rs)-1])
	}
}

func loops() map[string][]byte {
	i32 := wasm.I32
	// decide-like: sum with a condition over an array
	scan := Module{Memory: &wasm.Bounds{Least: 32}, Functions: []Function{{Export: "run", Signature: wasm.Signature{Results: []byte{i32}}, Locals: []byte{i32, i32, i32},
		Code: Code(Times(100, 2, I32(0), Set(0), Loop(Nothing,
			Get(0), LoadI32, Get(0), Op(0x28, 2, 4), AddI32, Tee(1), I32(100), LessI32, If(Nothing, Get(1), I32(3), MulI32, Set(1)),
			Get(0), Op(0x28, 2, 8), Get(1), AddI32, Set(1),
			Get(0), I32(16), AddI32, Tee(0), I32(160000), LessI32, BrIf(0))), Get(1))}}}
	tight := Module{Functions: []Function{{Export: "run", Signature: wasm.Signature{Results: []byte{i32}}, Locals: []byte{i32, i32},
		Code: Code(Times(3000000, 0, Get(1), Get(0), AddI32, Set(1)), Get(1))}}}
	fib := Module{Functions: []Function{
		{Export: "run", Signature: wasm.Signature{Results: []byte{i32}}, Code: Code(I32(24), Call(1))},
		{Signature: wasm.Signature{Params: []byte{i32}, Results: []byte{i32}}, Code: Code(Get(0), I32(2), LessI32, If(Nothing, Get(0), Return), Get(0), I32(1), SubI32, Call(1), Get(0), I32(2), SubI32, Call(1), AddI32)}}}
	leaf := Module{Functions: []Function{
		{Export: "run", Signature: wasm.Signature{Results: []byte{i32}}, Locals: []byte{i32, i32}, Code: Code(Times(1000000, 0, Get(1), Get(0), Call(1), Set(1)), Get(1))},
		{Signature: wasm.Signature{Params: []byte{i32, i32}, Results: []byte{i32}}, Code: Code(Get(0), Get(1), AddI32, I32(3), MulI32)}}}
	return map[string][]byte{"scan": scan.Bytes(), "tight": tight.Bytes(), "fib": fib.Bytes(), "leaf": leaf.Bytes()}
}
