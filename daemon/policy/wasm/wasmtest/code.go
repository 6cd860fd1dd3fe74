package wasmtest

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// Code puts instructions after each other.
func Code(instructions ...[]byte) []byte { return bytes.Join(instructions, nil) }

// Op returns instructions byte for byte.
func Op(b ...byte) []byte { return b }

// I32 returns the instruction that gives a constant.
func I32(n int32) []byte { return append([]byte{0x41}, Signed(int64(n))...) }

// I64 returns the instruction that gives a constant.
func I64(n int64) []byte { return append([]byte{0x42}, Signed(n)...) }

// F64 returns the instruction that gives a constant.
func F64(n float64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(n))
}

// Get reads a local variable.
func Get(local int) []byte { return append([]byte{0x20}, U32(local)...) }

// Set sets a local variable.
func Set(local int) []byte { return append([]byte{0x21}, U32(local)...) }

// Tee sets a local variable and keeps the value.
func Tee(local int) []byte { return append([]byte{0x22}, U32(local)...) }

// GetGlobal reads a global variable.
func GetGlobal(global int) []byte { return append([]byte{0x23}, U32(global)...) }

// SetGlobal sets a global variable.
func SetGlobal(global int) []byte { return append([]byte{0x24}, U32(global)...) }

// Call calls a function, by its index.
func Call(function int) []byte { return append([]byte{0x10}, U32(function)...) }

// CallIndirect calls a function of the table, by its type.
func CallIndirect(typ int) []byte { return slices.Concat([]byte{0x11}, U32(typ), []byte{0}) }

// The types of blocks: nothing, or one result.
var (
	Nothing  = []byte{0x40}
	GivesI32 = []byte{wasm.I32}
	GivesI64 = []byte{wasm.I64}
)

// OfType returns the type of a block by its index.
func OfType(typ int) []byte { return Signed(int64(typ)) }

// Block returns a block.
func Block(typ []byte, instructions ...[]byte) []byte {
	return slices.Concat([]byte{0x02}, typ, Code(instructions...), []byte{0x0b})
}

// Loop returns a loop.
func Loop(typ []byte, instructions ...[]byte) []byte {
	return slices.Concat([]byte{0x03}, typ, Code(instructions...), []byte{0x0b})
}

// If returns an if without an else.
func If(typ []byte, instructions ...[]byte) []byte {
	return slices.Concat([]byte{0x04}, typ, Code(instructions...), []byte{0x0b})
}

// IfElse returns an if with an else.
func IfElse(typ, yes, no []byte) []byte {
	return slices.Concat([]byte{0x04}, typ, yes, []byte{0x05}, no, []byte{0x0b})
}

// Br branches.
func Br(label int) []byte { return append([]byte{0x0c}, U32(label)...) }

// BrIf branches on a condition.
func BrIf(label int) []byte { return append([]byte{0x0d}, U32(label)...) }

// BrTable branches by an index; the last label is the default.
func BrTable(labels ...int) []byte {
	out := append([]byte{0x0e}, U32(len(labels)-1)...)
	for _, l := range labels {
		out = append(out, U32(l)...)
	}
	return out
}

// Instructions without an immediate, and the bulk operations on memory.
var (
	Unreachable = []byte{0x00}
	Return      = []byte{0x0f}
	Drop        = []byte{0x1a}
	AddI32      = []byte{0x6a}
	SubI32      = []byte{0x6b}
	MulI32      = []byte{0x6c}
	EqzI32      = []byte{0x45}
	LessI32     = []byte{0x49} // unsigned
	LoadI32     = []byte{0x28, 2, 0}
	StoreI32    = []byte{0x36, 2, 0}
	Size        = []byte{0x3f, 0}
	Grow        = []byte{0x40, 0}
	Fill        = []byte{0xfc, 11, 0}
	Copy        = []byte{0xfc, 10, 0, 0}
)

// Init copies out of a segment of data.
func Init(segment int) []byte { return slices.Concat([]byte{0xfc, 8}, U32(segment), []byte{0}) }

// Times does something n times; it uses a local variable of type i32.
func Times(n int32, local int, instructions ...[]byte) []byte {
	return Code(I32(0), Set(local), Loop(Nothing, Code(instructions...), Get(local), I32(1), AddI32, Tee(local), I32(n), LessI32, BrIf(0)))
}
