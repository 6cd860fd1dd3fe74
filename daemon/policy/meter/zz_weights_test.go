package meter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

func TestZZWeights(t *testing.T) {
	e := newEngine(t, compiler())
	simd2 := func(op ...byte) []byte { return Code([]byte{0xfd, 0x0c}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, append([]byte{0xfd}, op...)) }
	type kase struct {
		name  string
		local wasm.ValueType // local 1
		init  []byte
		step  []byte // uses local 1, leaves local 1
		n     int    // instrs counted
	}
	for _, k := range []kase{
		{"i32.add", wasm.I32, I32(7), Code(Get(1), I32(3), AddI32, Set(1)), 4},
		{"i32.div_s", wasm.I32, I32(1 << 30), Code(Get(1), I32(1), Op(0x6d), Set(1)), 4},
		{"i32.div_u var", wasm.I32, I32(-5), Code(Get(1), Get(0), I32(1), Op(0x72), Op(0x6e), I32(-7), Op(0x72), Set(1)), 8},
		{"i64.div_s", wasm.I64, I64(1 << 62), Code(Get(1), Get(1), I64(1), Op(0x84), Op(0x7f), I64(-1), Op(0x85), Set(1)), 8},
		{"i64.rem_u", wasm.I64, I64(-7), Code(I64(-3), Get(1), I64(1), Op(0x84), Op(0x82), Set(1)), 6},
		{"f64.div", wasm.F64, F64(1.5), Code(F64(3.3), Get(1), Op(0xa3), Set(1)), 4},
		{"f64.sqrt", wasm.F64, F64(1.5), Code(Get(1), Op(0x9f), Set(1)), 3},
		{"f64.nearest", wasm.F64, F64(1.5), Code(Get(1), Op(0x9e), Set(1)), 3},
		{"f64.min", wasm.F64, F64(1.5), Code(F64(3.3), Get(1), Op(0xa4), Set(1)), 4},
		{"i64.trunc_sat", wasm.F64, F64(1.5), Code(Get(1), Op(0xfc, 7), Op(0xba), Set(1)), 4},
		{"convert u64", wasm.F64, F64(1.5), Code(Get(1), Op(0xb0), Op(0xba), Set(1)), 4},
		{"popcnt", wasm.I64, I64(-7), Code(Get(1), Op(0x7b), Set(1)), 3},
		{"load chase 64MiB", wasm.I32, I32(64), Code(Get(1), LoadI32, Set(1)), 3},
		{"load tee", wasm.I32, I32(64), Code(Get(1), LoadI32, Tee(1), Set(1)), 4},
		{"memory.size", wasm.I32, I32(64), Code(Size, Set(1)), 2},
		{"global set", wasm.I32, I32(64), Code(GetGlobal(0), I32(1), AddI32, SetGlobal(0)), 4},
		{"import call", wasm.I32, I32(1), Code(Call(0)), 1},
		{"grow 0", wasm.I32, I32(1), Code(I32(0), Grow, Drop), 3},
		{"fill 0", wasm.I32, I32(1), Code(I32(0), I32(0), I32(0), Fill), 4},
		{"fill 63", wasm.I32, I32(1), Code(I32(0), I32(0), I32(63), Fill), 4},
		{"copy 63", wasm.I32, I32(1), Code(I32(0), I32(32), I32(63), Copy), 4},
		{"i64x2.mul", wasm.V128, simd2(), Code(Get(1), Get(1), Op(0xfd, 0xd5, 1), Set(1)), 4},
		{"f64x2.sqrt", wasm.V128, simd2(), Code(Get(1), Op(0xfd, 0xef, 1), Set(1)), 3},
		{"f64x2.div", wasm.V128, simd2(), Code(Get(1), Get(1), Op(0xfd, 0xf3, 1), Set(1)), 4},
		{"i8x16.popcnt", wasm.V128, simd2(), Code(Get(1), Op(0xfd, 0x62), Set(1)), 3},
		{"i8x16.shl", wasm.V128, simd2(), Code(Get(1), Get(0), Op(0xfd, 0x6b), Set(1)), 4},
		{"i8x16.shr_s", wasm.V128, simd2(), Code(Get(1), Get(0), Op(0xfd, 0x6c), Set(1)), 4},
		{"i64x2.shr_s", wasm.V128, simd2(), Code(Get(1), Get(0), Op(0xfd, 0xcc, 1), Set(1)), 4},
		{"i32x4.trunc_sat_f64x2_u", wasm.V128, simd2(), Code(Get(1), Op(0xfd, 0xfd, 1), Set(1)), 3},
		{"i32x4.trunc_sat_f32x4_u", wasm.V128, simd2(), Code(Get(1), Op(0xfd, 0xf9, 1), Set(1)), 3},
		{"f32x4.min", wasm.V128, simd2(), Code(Get(1), Get(1), Op(0xfd, 0xe8, 1), Set(1)), 4},
		{"shuffle", wasm.V128, simd2(), Code(Get(1), Get(1), Op(0xfd, 0x0d, 3, 2, 1, 0, 31, 30, 29, 28, 1, 2, 3, 4, 5, 6, 7, 8), Set(1)), 4},
		{"i64x2.extmul", wasm.V128, simd2(), Code(Get(1), Get(1), Op(0xfd, 0xdf, 1), Set(1)), 4},
		{"if", wasm.I32, I32(1), Code(Get(1), If(Nothing), Get(1), If(Nothing)), 4},
	} {
		const copies = 200
		init := k.init
		if k.local == wasm.V128 {
			init = init[:18]
		}
		var body []byte
		for range copies {
			body = append(body, k.step...)
		}
		m := Module{
			Imports: []wasm.Offer{{Module: "retinue", Name: "log", Signature: wasm.Signature{Params: []wasm.ValueType{127, 127, 127}}}},
			Memory:  &wasm.Bounds{Least: 1024},
			Globals: []wasm.Global{{Type: wasm.I32, Mutable: true, Init: I32(0)}},
			Functions: []Function{
				{Export: "fill", Locals: []wasm.ValueType{127, 127}, Code: Code(
					// a chain through all cache lines, by a step that is odd and far
					Loop(Nothing, Get(0), Get(0), I32(64*618983), AddI32, I32(1<<26-64), Op(0x71), Tee(0), StoreI32, Get(0), BrIf(0)))},
				{Export: "run", Signature: wasm.Signature{Params: []wasm.ValueType{127}}, Locals: []wasm.ValueType{k.local, 127}, Code: Code(init, Set(1), Loop(Nothing, body, Get(2), I32(1), AddI32, Tee(2), Get(0), LessI32, BrIf(0)))},
			},
		}
		if k.name == "import call" {
			var b []byte
			for range copies {
				b = append(b, Code(I32(0), I32(0), I32(0), Call(0))...)
			}
			m.Functions[1].Code = Code(Loop(Nothing, b, Get(2), I32(1), AddI32, Tee(2), Get(0), LessI32, BrIf(0)))
		}
		i := e.instantiate(t, m.Bytes(), nil)
		i.ExportedFunction("fill").Call(context.Background())
		f := i.ExportedFunction("run")
		const n = 500
		best := time.Hour
		for range 3 {
			began := time.Now()
			if _, err := f.Call(context.Background(), n); err != nil {
				t.Fatal(k.name, err)
			}
			best = min(best, time.Since(began))
		}
		per := float64(best.Nanoseconds()) / n / copies
		fmt.Printf("%-26s %7.2f ns a group, %6.2f ns an instruction, 256: %6.2f µs\n", k.name, per, per/float64(k.n), per/float64(k.n)*256/1000)
		i.Close(context.Background())
	}
}
