package meter

import (
	"slices"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// helper is a function that is appended to a module.
type helper struct {
	kind    helperKind
	segment uint32 // of data, for initChunks
}

type helperKind byte

const (
	refuel     helperKind = iota // () → (): asks the host for fuel
	grow                         // like memory.grow
	fill                         // like memory.fill
	copyBytes                    // like memory.copy
	charge                       // (bytes) → bytes: pays for so many, if they are at most a chunk
	initChunks                   // like memory.init, for a segment of more than a chunk
)

const (
	// chunk is the most that one bulk operation handles without asking whether there is fuel for more, in bytes. On memory that was never
	// touched that is 0.2 to 0.8 ms.
	chunk = 256 << 10
	// bytesPerTick is what a tick pays for, as a power of two. A thousand ticks are 64 KiB then: 5 µs of a fill in the cache, 0.2 ms of
	// one in memory that was never touched.
	bytesPerTick = 6
	// pageTicks is what a page of memory costs to have, as a power of two: its bytes.
	pageTicks = 16 - bytesPerTick
)

// help returns the index of a helper, which it appends if need be.
func (w *writer) help(h helper) uint32 {
	at := slices.Index(w.helpers, h)
	if at < 0 {
		at = len(w.helpers)
		w.helpers = append(w.helpers, h)
	}
	return uint32(len(w.Imports) + importedFunctions + len(w.Functions) + at)
}

func (h helper) signature() wasm.Signature {
	one := []wasm.ValueType{wasm.I32}
	switch h.kind {
	case refuel:
		return wasm.Signature{}
	case grow, charge:
		return wasm.Signature{Params: one, Results: one}
	default: // bulk operations
	}
	return wasm.Signature{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}}
}

// helper returns the code of a helper, with its locals.
func (w *writer) helper(h helper) (c code) {
	switch h.kind {
	case refuel:
		c.raw(0) // no locals
		c.with(wasm.OpGlobalGet, w.fuel())
		c.with(wasm.OpCall, w.refill())
		c.with(wasm.OpGlobalSet, w.fuel())
	case grow:
		w.grow(&c)
	case charge:
		w.charge(&c)
	default:
		w.inChunks(&c, h)
	}
	c.raw(end)
	return c
}

// grow pays for memory before it is had. What cannot be had costs as little as any call.
func (w *writer) grow(c *code) {
	const delta = 0
	c.raw(0) // no locals
	c.with(wasm.OpLocalGet, delta)
	c.i32(int32(w.memoryMost()))
	c.raw(memorySize, oneMemory, i32Subtract, i32LessOrEqual, when, noValues)
	w.pay(c, func() {
		c.with(wasm.OpLocalGet, delta)
		c.i32(pageTicks)
		c.raw(i32ShiftLeft)
	})
	c.raw(end)
	w.check(c)
	c.with(wasm.OpLocalGet, delta)
	c.raw(memoryGrow, oneMemory)
}

// charge pays for a copy out of a short segment. More than a chunk is more than the segment has, and traps.
func (w *writer) charge(c *code) {
	const size = 0
	c.raw(0) // no locals
	c.with(wasm.OpLocalGet, size)
	c.i32(chunk)
	c.raw(i32LessOrEqual, when, noValues)
	w.payForBytes(c, size)
	c.raw(end)
	c.with(wasm.OpLocalGet, size)
}

// The parameters of a bulk operation.
const (
	to = iota
	from
	size
)

// inChunks does a bulk operation, paid for a chunk at a time. All of it must be inside of the memory before anything is written, so for
// more than one chunk that is looked at first; the engine does it for one.
func (w *writer) inChunks(c *code, h helper) {
	c.raw(0) // no locals
	whole := func() {
		for i := range uint32(size + 1) {
			c.with(wasm.OpLocalGet, i)
		}
		c.bulk(h)
	}
	c.moreThanChunk()
	c.raw(when, noValues)
	w.trapOutside(c, h, whole)
	if h.kind == copyBytes { // from the end, if what is still to be read would be written over
		c.with(wasm.OpLocalGet, to)
		c.with(wasm.OpLocalGet, from)
		c.raw(i32Greater, when, noValues)
		w.chunks(c, h, true)
		c.raw(otherwise)
		w.chunks(c, h, false)
		c.raw(end)
	} else {
		w.chunks(c, h, false)
	}
	c.raw(end)
	w.payForBytes(c, size)
	whole()
}

// moreThanChunk is whether there is more than one chunk left.
func (c *code) moreThanChunk() {
	c.with(wasm.OpLocalGet, size)
	c.i32(chunk)
	c.raw(i32Greater)
}

// trapOutside does the whole operation if it reaches past an end, which traps.
func (w *writer) trapOutside(c *code, h helper, whole func()) {
	outside := func(start uint32, limit func()) {
		for _, local := range []uint32{start, size} {
			c.with(wasm.OpLocalGet, local)
			c.raw(i64FromUnsigned)
		}
		c.raw(i64Add)
		limit()
		c.raw(i64Greater, when, noValues)
		whole()
		c.raw(unreachable, end)
	}
	memoryEnd := func() {
		c.raw(memorySize, oneMemory, i64FromUnsigned)
		c.i64(16)
		c.raw(i64ShiftLeft)
	}
	outside(to, memoryEnd)
	switch h.kind {
	case copyBytes:
		outside(from, memoryEnd)
	case initChunks:
		outside(from, func() { c.i64(int64(w.Data[h.segment].Size)) })
	default:
	}
}

// chunks does all but the last chunk, or, from the end, all but the first.
func (w *writer) chunks(c *code, h helper, fromEnd bool) {
	c.raw(loop, noValues)
	w.pay(c, func() { c.i32(chunk>>bytesPerTick + 1) })
	if fromEnd {
		c.add(size, -chunk)
	}
	for _, local := range []uint32{to, from} {
		c.with(wasm.OpLocalGet, local)
		if fromEnd {
			c.with(wasm.OpLocalGet, size)
			c.raw(i32Add)
		}
	}
	c.i32(chunk)
	c.bulk(h)
	if !fromEnd {
		c.add(to, chunk)
		if h.kind != fill { // whose second parameter is the value
			c.add(from, chunk)
		}
		c.add(size, -chunk)
	}
	c.moreThanChunk()
	c.raw(byte(wasm.OpBrIf), 0, end)
}

func (c *code) add(local uint32, n int32) {
	c.with(wasm.OpLocalGet, local)
	c.i32(n)
	c.raw(i32Add)
	c.with(wasm.OpLocalSet, local)
}

// bulk appends the operation itself.
func (c *code) bulk(h helper) {
	switch h.kind {
	case fill:
		c.raw(bulkPrefix, bulkFill, oneMemory)
	case copyBytes:
		c.raw(bulkPrefix, bulkCopy, oneMemory, oneMemory)
	default:
		c.raw(bulkPrefix, bulkInit)
		c.u32(h.segment)
		c.raw(oneMemory)
	}
}
