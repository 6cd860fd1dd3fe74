package meter

import "github.com/retinue-sched/retinue/daemon/policy/wasm"

// check pays one tick, and asks for more if there was none. It leaves the stack as it is.
func (w *writer) check(c *code) {
	w.pay(c, func() { c.i32(1) })
}

// payForBytes pays for as many bytes as a local says, and a tick.
func (w *writer) payForBytes(c *code, size uint32) {
	w.pay(c, func() {
		c.with(wasm.OpLocalGet, size)
		c.i32(bytesPerTick)
		c.raw(i32ShiftRight)
		c.i32(1)
		c.raw(i32Add)
	})
}

// pay takes ticks off the fuel, and asks the host for more if less than none is left. (To keep what is left in a local variable for the
// comparison, or to compare before, is no faster.)
func (w *writer) pay(c *code, ticks func()) {
	c.with(wasm.OpGlobalGet, w.fuel())
	ticks()
	c.raw(i32Subtract)
	c.with(wasm.OpGlobalSet, w.fuel())
	c.negative(w.fuel())
	c.with(wasm.OpCall, w.help(helper{kind: refuel}))
	c.raw(end)
}

// negative opens a block that is entered if a global is less than 0.
func (c *code) negative(global uint32) {
	c.with(wasm.OpGlobalGet, global)
	c.i32(0)
	c.raw(i32LessSigned, when, noValues)
}

// enter counts a call that can have others inside of it.
func (w *writer) enter(c *code) {
	c.with(wasm.OpGlobalGet, w.depth())
	c.i32(1)
	c.raw(i32Subtract)
	c.with(wasm.OpGlobalSet, w.depth())
	c.negative(w.depth())
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
