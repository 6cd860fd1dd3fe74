package meter

import "github.com/retinue-sched/retinue/daemon/policy/wasm"

// check pays one tick, and asks for more if that was the last one. It leaves the stack as it is.
func (w *writer) check(c *code, scratch uint32) {
	w.pay(c, scratch, func() { c.i32(1) })
	w.ask(c, scratch)
}

// payForBytes pays for as many bytes as a local says, and a tick, and asks for more if need be.
func (w *writer) payForBytes(c *code, size, scratch uint32) {
	w.pay(c, scratch, func() {
		c.with(wasm.OpLocalGet, size)
		c.i32(bytesPerTick)
		c.raw(i32ShiftRight)
		c.i32(1)
		c.raw(i32Add)
	})
	w.ask(c, scratch)
}

// pay takes ticks off the fuel, and leaves what is left in scratch, too: reading a local is cheaper than reading a global.
func (w *writer) pay(c *code, scratch uint32, ticks func()) {
	c.with(wasm.OpGlobalGet, w.fuel())
	ticks()
	c.raw(i32Subtract)
	c.with(wasm.OpLocalTee, scratch)
	c.with(wasm.OpGlobalSet, w.fuel())
}

// ask asks the host for more if nothing is left.
func (w *writer) ask(c *code, scratch uint32) {
	c.with(wasm.OpLocalGet, scratch)
	c.i32(0)
	c.raw(i32LessSigned, when, noValues)
	c.with(wasm.OpCall, w.help(helper{kind: refuel}))
	c.raw(end)
}

// enter counts a call that can have others inside of it.
func (w *writer) enter(c *code, scratch uint32) {
	c.with(wasm.OpGlobalGet, w.depth())
	c.i32(1)
	c.raw(i32Subtract)
	c.with(wasm.OpLocalTee, scratch)
	c.with(wasm.OpGlobalSet, w.depth())
	c.with(wasm.OpLocalGet, scratch)
	c.i32(0)
	c.raw(i32LessSigned, when, noValues)
	c.with(wasm.OpCall, w.tooDeep())
	c.raw(unreachable, end)
}

// leave undoes enter.
func (w *writer) leave(c *code) {
	c.with(wasm.OpGlobalGet, w.depth())
	c.i32(1)
	c.raw(i32Add)
	c.with(wasm.OpGlobalSet, w.depth())
}
