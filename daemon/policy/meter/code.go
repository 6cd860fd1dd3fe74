package meter

import (
	"encoding/binary"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// code is a piece of a module that is being written.
type code []byte

func (c *code) raw(b ...byte) { *c = append(*c, b...) }

func (c *code) u32(n uint32) { *c = binary.AppendUvarint(*c, uint64(n)) }

func (c *code) signed(n int64) {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			c.raw(b)
			return
		}
		c.raw(b | 0x80)
	}
}

func (c *code) text(s string) {
	c.u32(uint32(len(s)))
	*c = append(*c, s...)
}

// sized appends bytes after their number.
func (c *code) sized(b []byte) {
	c.u32(uint32(len(b)))
	c.raw(b...)
}

// with appends an instruction that names something by its index.
func (c *code) with(op wasm.Opcode, index uint32) {
	c.raw(byte(op))
	c.u32(index)
}

func (c *code) i32(n int32) {
	c.raw(byte(wasm.OpI32Const))
	c.signed(int64(n))
}

func (c *code) i64(n int64) {
	c.raw(byte(wasm.OpI64Const))
	c.signed(n)
}

// Instructions without an immediate, and blocks of a type.
const (
	unreachable = byte(wasm.OpUnreachable)
	block       = byte(wasm.OpBlock)
	loop        = byte(wasm.OpLoop)
	when        = byte(wasm.OpIf)
	otherwise   = byte(wasm.OpElse)
	end         = byte(wasm.OpEnd)
	noValues    = 0x40

	i32LessSigned    = 0x48
	i32Greater       = 0x4b
	i32LessOrEqual   = 0x4d
	i64Greater       = 0x56
	i32Add           = 0x6a
	i32Subtract      = 0x6b
	i32ShiftLeft     = 0x74
	i32ShiftRight    = 0x76
	i64Add           = 0x7c
	i64ShiftLeft     = 0x86
	i64FromUnsigned  = 0xad
	oneMemory        = 0x00
	memorySize       = byte(wasm.OpMemorySize)
	memoryGrow       = byte(wasm.OpMemoryGrow)
	bulkPrefix       = byte(wasm.OpMemoryFill >> 8)
	bulkFill         = byte(wasm.OpMemoryFill & 0xff)
	bulkCopy         = byte(wasm.OpMemoryCopy & 0xff)
	bulkInit         = byte(wasm.OpMemoryInit & 0xff)
	functionTypeForm = 0x60
)
