package wasm

import (
	"errors"
	"fmt"
)

// Walk reads code, an instruction after the other. What it says of an instruction holds until the next one.
type Walk struct {
	Op     Opcode
	At     int       // where the instruction starts in the code, in bytes
	Index  uint32    // of the function, type, local, global, label, segment or table that it names
	Block  BlockType // of a block, loop or if
	Labels []uint32  // of a br_table; the last one is the default

	r     reader
	table uint32 // the second index of those that have two
}

// BlockType is the type of a block: the index of a type, or, if negative, none or one result in the encoding of the binary format.
type BlockType int64

// NoValues is the type of a block that takes nothing and gives nothing.
const NoValues BlockType = -64

// WalkOver returns a walk that starts before the first instruction.
func WalkOver(code []byte) *Walk { return &Walk{r: reader{b: code}} }

// End returns where the instruction ends in the code, in bytes.
func (w *Walk) End() int { return w.r.at }

// Err returns what was wrong with the instruction that made Next stop early, or nil.
func (w *Walk) Err() error { return w.r.err }

// Next goes to the next instruction. It is false at the end of the code, and when something is wrong.
func (w *Walk) Next() bool {
	if w.r.done() {
		return false
	}
	w.At = w.r.at
	w.Op = w.opcode()
	if w.r.err == nil {
		w.immediate(immediateOf(w.Op))
	}
	return w.r.err == nil
}

func (w *Walk) opcode() Opcode {
	op := Opcode(w.r.byte())
	if op != prefixBulk && op != prefixSIMD {
		return op
	}
	second := w.r.u32()
	if second > 0xff {
		w.r.fail(fmt.Errorf("the instruction 0x%x 0x%x is not known to this host", op, second))
		return 0
	}
	return op<<8 | Opcode(second)
}

func (w *Walk) immediate(i immediate) {
	switch r := &w.r; i {
	case none:
	case unknown:
		r.fail(fmt.Errorf("the instruction 0x%x is not known to this host", uint16(w.Op)))
	case blockType:
		if w.Block = BlockType(r.signed(33)); w.Block < 0 && w.Block != NoValues {
			r.want(byte(w.Block & 0x7f))
		}
	case labels:
		w.labels()
	case label, function, local, global, table, dataIndex, elemIndex:
		w.Index = r.u32()
	case typeTable, elemTable, twoTables:
		w.Index, w.table = r.u32(), r.u32()
	case dataMemory:
		w.Index = r.u32()
		w.memory()
	case memoryArg, memoryLane:
		w.memoryArg()
		if i == memoryLane {
			r.byte()
		}
	case memories:
		w.memory()
		w.memory()
	case memory:
		w.memory()
	case number32:
		r.signed(32)
	case number64:
		r.signed(64)
	default:
		w.constant(i)
	}
}

func (w *Walk) constant(i immediate) {
	switch r := &w.r; i {
	case lane:
		r.byte()
	case fourBytes:
		r.bytes(4)
	case eightBytes:
		r.bytes(8)
	case bytes16:
		r.bytes(16)
	case reference:
		if t := r.byte(); t != FuncRef && t != ExternRef {
			r.fail(fmt.Errorf("a reference is of the unknown type 0x%02x", t))
		}
	case selectTypes:
		if n := r.u32(); n != 1 {
			r.fail(fmt.Errorf("a select has %d types", n))
		}
		r.want(r.byte())
	default:
	}
}

func (w *Walk) labels() {
	w.Labels = w.Labels[:0]
	for n := uint64(w.r.u32()) + 1; n > 0 && w.r.err == nil; n-- {
		w.Labels = append(w.Labels, w.r.u32())
	}
}

// errMemories says that an instruction names a memory by its number.
var errMemories = errors.New("an instruction names a second memory, one is allowed")

func (w *Walk) memory() {
	if w.r.byte() != 0 {
		w.r.fail(errMemories)
	}
}

func (w *Walk) memoryArg() {
	if align := w.r.u32(); align >= 1<<6 {
		w.r.fail(errMemories)
	}
	w.r.u32()
}
