package meter

import (
	"context"
	"fmt"
	"testing"
	"time"
	"runtime"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

func TestZZBombs(t *testing.T) {
	i32 := wasm.I32
	many := func(n int) []byte { return make([]byte, 0) }
	_ = many
	locs := func(n int) (l []byte) { for range n { l = append(l, i32) }; return }
	vals := func(n int) (l []byte) { for range n { l = append(l, i32) }; return }
	gets := func(n int) (c []byte) { for i := range n { c = append(c, Get(i)...) }; return }
	bombs := map[string]Module{}
	nest := []byte{}
	for range 1000 { nest = If(Nothing, Code(Get(0), nest, Get(0), Set(0)))
		nest = append(Get(0), nest...) }
	bombs["nest1000"] = one(i32ToI32, nil, nest, Get(0))
	bombs["4096loops"] = one(i32ToI32, nil, repeat(4090, Loop(Nothing, Get(0), I32(1), AddI32, Set(0))), Get(0))
	bombs["4096ifs"] = one(i32ToI32, nil, repeat(4090, Get(0), If(Nothing, Get(0), I32(1), AddI32, Set(0))), Get(0))
	var c []byte
	for i := range 4090 { c = append(c, Code(Get(0), If(Nothing, Get(0), Set(1+i%990)))...) }
	c2 := c
	for i := range 990 { c2 = append(c2[:len(c2):len(c2)], Code(Get(0), Get(1+i), AddI32, Set(0))...) }
	bombs["4096ifs x 990 locals"] = one(i32ToI32, locs(990), c2, Get(0))
	c = nil
	for i := range 4090 { c = append(c, Code(Loop(Nothing, Get(1+i%990), Set(1+(i+1)%990), Get(0), BrIf(0)))...) }
	for i := range 990 { c = append(c, Code(Get(0), Get(1+i), AddI32, Set(0))...) }
	bombs["4096loops x 990 locals"] = one(i32ToI32, locs(990), c, Get(0))
	// nested loops and locals
	in := Code(gets(0))
	for i := range 990 { in = append(in, Code(Get(0), Get(1+i), AddI32, Set(1+i))...) }
	for range 1000 { in = Loop(Nothing, in, Get(0), BrIf(0)) }
	bombs["1000 nested loops x 990 locals"] = one(i32ToI32, locs(990), in, Get(0))
	// br_table 2 x 2048 in many blocks
	var lab []int
	for i := range 2048 { lab = append(lab, i%1000) }
	b := Code(Get(0), BrTable(lab...))
	for i := range 1000 { b = Block(Nothing, b); b = append(b, Code(Get(0), I32(int32(i)), AddI32, Set(0))...) }
	bombs["br_table 2048 to 1000"] = one(i32ToI32, nil, b, Get(0))
	// calls w/ many values
	s := wasm.Signature{Params: vals(128), Results: vals(128)}
	cm := Module{Functions: []Function{{Export: "f", Signature: s, Code: Code(gets(128), repeat(500, Call(0)))}}}
	bombs["500 calls x 256 values"] = cm
	cb := Module{Types: []wasm.Signature{s}, Functions: []Function{{Export: "f", Signature: s, Code: Code(gets(128), repeat(900, Get(0), BrIf(0)))}}}
	bombs["900 br_if x 128 values"] = cb
	bombs["straight adds 128K"] = one(i32ToI32, nil, Get(0), repeat(32000, I32(3), AddI32))
	bombs["42000 calls"] = one(i32ToI32, nil, repeat(25000, Get(0), Call(0), Drop), Get(0))
	bombs["loads 128K"] = one(i32ToI32, nil, repeat(21000, Get(0), LoadI32, Drop), Get(0))
	deep := Code(repeat(40000, Get(0)), repeat(39999, AddI32))
	bombs["40000 values on the stack"] = one(i32ToI32, nil, deep)
	bombs["10000 values across calls"] = one(i32ToI32, nil, repeat(10000, Get(0), Call(0)), repeat(9999, AddI32))
	for name, m := range bombs {
		bin := m.Bytes()
		p, err := wasm.Parse(bin, wasm.DefaultLimits())
		if err != nil { fmt.Println(name, "REFUSED", err); continue }
		met, err := Rewrite(p, DefaultConfig())
		if err != nil { t.Fatal(err) }
		res := [2]time.Duration{}
		var mem [2]uint64
		for k, bb := range [][]byte{bin, met.Wasm} {
			e := newEngine(t, compiler())
			var a, z runtime.MemStats
			runtime.ReadMemStats(&a)
			s := time.Now()
			_, err = e.CompileModule(context.Background(), bb)
			res[k] = time.Since(s)
			runtime.ReadMemStats(&z)
			mem[k] = (z.TotalAlloc - a.TotalAlloc) >> 20
			e.Close(context.Background())
			if err != nil { fmt.Println(name, err); break }
		}
		fmt.Printf("%-34s %7d → %7d bytes: plain %6.0f ms %5d MB, metered %6.0f ms %5d MB  moves %d\n", name, len(bin), len(met.Wasm), res[0].Seconds()*1000, mem[0], res[1].Seconds()*1000, mem[1], p.Shape.FunctionMoves)
	}
}
