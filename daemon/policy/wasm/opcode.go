package wasm

// Opcode names an instruction. One with a prefix has the prefix in its upper byte.
type Opcode uint16

// The instructions that are more to the reader, or to who walks over code, than a name and an immediate.
const (
	OpUnreachable  Opcode = 0x00
	OpBlock        Opcode = 0x02
	OpLoop         Opcode = 0x03
	OpIf           Opcode = 0x04
	OpElse         Opcode = 0x05
	OpEnd          Opcode = 0x0b
	OpBr           Opcode = 0x0c
	OpBrIf         Opcode = 0x0d
	OpBrTable      Opcode = 0x0e
	OpReturn       Opcode = 0x0f
	OpCall         Opcode = 0x10
	OpCallIndirect Opcode = 0x11
	OpDrop         Opcode = 0x1a
	OpLocalGet     Opcode = 0x20
	OpLocalSet     Opcode = 0x21
	OpLocalTee     Opcode = 0x22
	OpGlobalGet    Opcode = 0x23
	OpGlobalSet    Opcode = 0x24
	OpTableSet     Opcode = 0x26
	OpI32Load      Opcode = 0x28
	OpI64Store32   Opcode = 0x3e
	OpMemorySize   Opcode = 0x3f
	OpMemoryGrow   Opcode = 0x40
	OpI32Const     Opcode = 0x41
	OpI64Const     Opcode = 0x42
	OpF32Const     Opcode = 0x43
	OpF64Const     Opcode = 0x44
	OpRefNull      Opcode = 0xd0
	OpRefFunc      Opcode = 0xd2
	OpMemoryInit   Opcode = 0xfc08
	OpDataDrop     Opcode = 0xfc09
	OpMemoryCopy   Opcode = 0xfc0a
	OpMemoryFill   Opcode = 0xfc0b
	OpTableInit    Opcode = 0xfc0c
	OpElemDrop     Opcode = 0xfc0d
	OpTableCopy    Opcode = 0xfc0e
	OpTableGrow    Opcode = 0xfc0f
	OpTableFill    Opcode = 0xfc11
	OpV128Const    Opcode = 0xfd0c
)

// The prefixes of instructions.
const (
	prefixBulk Opcode = 0xfc
	prefixSIMD Opcode = 0xfd
)

// immediate is what follows an opcode.
type immediate byte

const (
	unknown immediate = iota
	none
	blockType
	label
	labels      // a count, that many, and the default
	function    // index
	typeTable   // type index, table index
	local       // index
	global      // index
	table       // index
	memoryArg   // alignment and offset
	memoryLane  // the same and a lane
	lane        // one byte
	memory      // one byte: 0
	memories    // two of them
	dataMemory  // data index, memory
	dataIndex   //
	elemTable   // element index, table index
	elemIndex   //
	twoTables   // indices
	number32    // signed
	number64    // signed
	fourBytes   //
	eightBytes  //
	bytes16     //
	reference   // a type of references
	selectTypes // a count and value types
)

// The immediates of instructions of one byte, and behind the two prefixes.
var (
	plainImmediates = immediatesOf(
		span{0x00, 0x01, none}, span{0x02, 0x04, blockType}, span{0x05, 0x05, none}, span{0x0b, 0x0b, none}, span{0x0c, 0x0d, label},
		span{0x0e, 0x0e, labels}, span{0x0f, 0x0f, none}, span{0x10, 0x10, function}, span{0x11, 0x11, typeTable}, span{0x1a, 0x1b, none},
		span{0x1c, 0x1c, selectTypes}, span{0x20, 0x22, local}, span{0x23, 0x24, global}, span{0x25, 0x26, table}, span{0x28, 0x3e, memoryArg},
		span{0x3f, 0x40, memory}, span{0x41, 0x41, number32}, span{0x42, 0x42, number64}, span{0x43, 0x43, fourBytes},
		span{0x44, 0x44, eightBytes}, span{0x45, 0xc4, none}, span{0xd0, 0xd0, reference}, span{0xd1, 0xd1, none}, span{0xd2, 0xd2, function},
	)
	bulkImmediates = immediatesOf(
		span{0, 7, none}, span{8, 8, dataMemory}, span{9, 9, dataIndex}, span{10, 10, memories}, span{11, 11, memory},
		span{12, 12, elemTable}, span{13, 13, elemIndex}, span{14, 14, twoTables}, span{15, 17, table},
	)
	simdImmediates = immediatesOf(
		span{0, 255, none}, span{0, 11, memoryArg}, span{12, 13, bytes16}, span{21, 34, lane}, span{84, 91, memoryLane}, span{92, 93, memoryArg},
		// No instruction has these numbers.
		span{0x9a, 0x9a, unknown}, span{0xa2, 0xa2, unknown}, span{0xa5, 0xa6, unknown}, span{0xaf, 0xb0, unknown}, span{0xb2, 0xb4, unknown},
		span{0xbb, 0xbb, unknown}, span{0xc2, 0xc2, unknown}, span{0xc5, 0xc6, unknown}, span{0xcf, 0xd0, unknown}, span{0xd2, 0xd4, unknown},
		span{0xe2, 0xe2, unknown}, span{0xee, 0xee, unknown},
	)
)

// span gives all opcodes from the first to the last the same immediate.
type span struct {
	first, last int
	immediate
}

func immediatesOf(spans ...span) (all [256]immediate) {
	for _, s := range spans {
		for op := s.first; op <= s.last; op++ {
			all[op] = s.immediate
		}
	}
	return all
}

// immediateOf returns what follows an opcode.
func immediateOf(op Opcode) immediate {
	switch op >> 8 {
	case 0:
		return plainImmediates[op]
	case prefixBulk:
		return bulkImmediates[op&0xff]
	default:
	}
	return simdImmediates[op&0xff]
}

// Accesses reports whether an instruction reads or writes memory or a table at an address of its operands.
func Accesses(op Opcode) bool {
	switch immediateOf(op) {
	case memoryArg, memoryLane, table:
		return true
	default:
		return false
	}
}

// refusal says why an instruction is not allowed, or nothing.
func refusal(op Opcode) string {
	switch op {
	case OpTableSet, OpTableInit, OpTableCopy, OpTableGrow, OpTableFill:
		return "changes a table, which the host does not put back between calls: fill tables by active element segments only"
	case OpDataDrop, OpElemDrop:
		return "drops a segment, which the host does not put back between calls: use active segments, or keep passive ones"
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return "uses exceptions, which are not supported: build without them"
	case 0x12, 0x13, 0x15:
		return "uses tail calls, which are not supported: build without them"
	case 0xfb:
		return "uses garbage-collected types, which are not supported: build without them"
	case 0xfe:
		return "uses threads, which are not supported: build without them"
	default:
	}
	if immediateOf(op) == unknown {
		return "is not known to this host: build for WebAssembly 2.0 without later features"
	}
	return ""
}
