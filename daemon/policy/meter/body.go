package meter

import (
	"fmt"
	"slices"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// bodies returns the code section.
func (w *writer) bodies() (code, error) {
	var all, helpers code
	all = slices.Grow(all, w.Size)
	b := body{writer: w}
	for i := range w.Functions {
		if err := b.rewrite(&w.Functions[i]); err != nil {
			return nil, fmt.Errorf("metering function %d: %w", len(w.Imports)+i, err)
		}
		all.sized(b.code)
	}
	for i := 0; i < len(w.helpers); i++ { // a helper may need another
		helpers.sized(w.helper(w.helpers[i]))
	}
	var section code
	section = slices.Grow(section, len(all)+len(helpers)+5)
	section.u32(uint32(len(w.Functions) + len(w.helpers)))
	section.raw(all...)
	section.raw(helpers...)
	return section, nil
}

// body rewrites the body of one function after the other.
type body struct {
	*writer
	code   code
	path   path
	counts bool // its calls are counted
}

// rewrite leaves the metered form of a function's body in code. A function that calls others is wrapped in a block, and leaves through
// its end, whichever way it ends: there its depth is given back. A branch to the function itself is one to that block as it stands.
func (b *body) rewrite(f *wasm.Function) error {
	b.code, b.path, b.counts = b.code[:0], path{labels: b.path.labels[:0]}, f.Calls
	b.declare(f)
	if b.counts {
		b.enter(&b.code)
	}
	if !loopsAtOnce(f.Code) {
		b.check(&b.code)
	}
	if b.counts {
		b.wrap(b.Types[f.Type].Results)
	}
	b.path.open(wasm.OpBlock)
	walk := wasm.WalkOver(f.Code)
	for walk.Next() {
		weight := b.weight(walk)
		if b.path.full(walk.Op, weight) {
			b.check(&b.code)
			b.path.paid()
		}
		b.instruction(walk, f.Code[walk.At:walk.End()])
		b.path.step(walk, weight)
		if walk.Op == wasm.OpLoop && b.path.alive() {
			b.check(&b.code)
			b.path.paid()
		}
	}
	if b.counts {
		b.leave(&b.code)
		b.code.raw(end)
	}
	return walk.Err()
}

// declare repeats the function's locals.
func (b *body) declare(f *wasm.Function) {
	b.code.u32(uint32(len(f.Locals)))
	for _, run := range f.Locals {
		b.code.u32(run.Count)
		b.code.raw(run.Type)
	}
}

// wrap opens a block that gives what the function gives.
func (b *body) wrap(results []wasm.ValueType) {
	b.code.raw(block)
	switch len(results) {
	case 0:
		b.code.raw(noValues)
	case 1:
		b.code.raw(results[0])
	default:
		b.code.signed(int64(b.typeIndex(wasm.Signature{Results: results})))
	}
}

// instruction appends what stands for an instruction of the plain function.
func (b *body) instruction(walk *wasm.Walk, plain []byte) {
	switch c := &b.code; walk.Op {
	case wasm.OpCall, wasm.OpRefFunc:
		c.with(walk.Op, b.function(walk.Index))
	case wasm.OpReturn:
		if b.counts {
			c.with(wasm.OpBr, uint32(len(b.path.labels)-1))
		} else {
			c.raw(plain...)
		}
	case wasm.OpMemoryGrow:
		c.with(wasm.OpCall, b.help(helper{kind: grow}))
	case wasm.OpMemoryFill:
		c.with(wasm.OpCall, b.help(helper{kind: fill}))
	case wasm.OpMemoryCopy:
		c.with(wasm.OpCall, b.help(helper{kind: copyBytes}))
	case wasm.OpMemoryInit:
		if b.Data[walk.Index].Size > chunk {
			c.with(wasm.OpCall, b.help(helper{kind: initChunks, segment: walk.Index}))
		} else {
			c.with(wasm.OpCall, b.help(helper{kind: charge}))
			c.raw(plain...)
		}
	default:
		c.raw(plain...)
	}
}
