// Package wasm reads WebAssembly modules and judges them before anything is compiled.
//
// It promises: no bytes make it panic; what it takes of time and memory is linear in the size of the module; and a module that
// Parse lets through has the shape that compiling and metering rely on: every section in its place, every index inside of what
// it counts, every body well nested, no feature and no size beyond the limits. Types on the operand stack are left to the engine,
// which validates the whole.
package wasm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// ValueType is the type of a value, in the encoding of the binary format.
type ValueType = byte

// The types of values.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// Kind is what crosses a module's border, in the encoding of the binary format.
type Kind byte

// The kinds of imports and exports.
const (
	KindFunction Kind = 0
	KindTable    Kind = 1
	KindMemory   Kind = 2
	KindGlobal   Kind = 3
)

// PageSize is the size of a page of memory in bytes.
const PageSize = 64 << 10

// Module is a module that Parse has let through. What it holds shares memory with the bytes that it was parsed from.
type Module struct {
	Size      int // bytes
	Types     []Signature
	Imports   []Import
	Functions []Function // its own; in the index space they follow the imported ones
	Tables    []Table    // at most one
	Memories  []Bounds   // at most one; in pages
	Globals   []Global
	Exports   []Export
	Elements  []Element
	Data      []Segment
	DataCount bool // the number of segments stands ahead of the code, which memory.init needs
	Custom    []Custom
	Shape     Shape

	data  []byte // the data section
	names map[uint32]string
}

// Signature is the type of a function.
type Signature struct {
	Params, Results []ValueType
}

// Import is a function that a module needs. It needs nothing else: Parse refuses that.
type Import struct {
	Module, Name string
	Type         uint32 // index into Types
}

// Function is one of the module's own.
type Function struct {
	Type   uint32 // index into Types
	Offset int    // of Code in the module, in bytes
	Locals []Locals
	Code   []byte // the instructions, with the last end
	Calls  bool   // it calls something
}

// Locals is a run of local variables of one type.
type Locals struct {
	Count uint32
	Type  ValueType
}

// Table is a table of references.
type Table struct {
	Holds ValueType
	Bounds
}

// Bounds are the size of a memory in pages, or of a table in entries.
type Bounds struct {
	Least   uint32
	Most    uint32 // holds only if Bounded
	Bounded bool
}

// Global is a global variable.
type Global struct {
	Type    ValueType
	Mutable bool
	Init    Expression
}

// Expression is a constant expression: instructions, with the last end.
type Expression []byte

// Export is something that a module offers.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Element is a segment of references, for the table.
type Element struct {
	Flags     uint32 // as in the binary format: which of the other fields are written down
	Table     uint32
	Offset    Expression
	Holds     byte         // a kind or a type
	Functions []uint32     // of a segment of function indices
	Items     []Expression // of a segment of expressions
}

// Segment is a segment of data.
type Segment struct {
	Passive bool
	Size    uint32 // bytes
}

// Custom is a custom section.
type Custom struct {
	Name    string
	Content []byte
}

// DataSection returns the content of the data section, or nothing.
func (m *Module) DataSection() []byte { return m.data }

// Section returns the content of the first custom section of a name.
func (m *Module) Section(name string) (content []byte, there bool) {
	for _, c := range m.Custom {
		if c.Name == name {
			return c.Content, true
		}
	}
	return nil, false
}

// Exported returns what is exported under a name.
func (m *Module) Exported(name string) (Export, bool) {
	at := slices.IndexFunc(m.Exports, func(e Export) bool { return e.Name == name })
	if at < 0 {
		return Export{}, false
	}
	return m.Exports[at], true
}

// Function returns the type of an exported function.
func (m *Module) Function(name string) (Signature, bool) {
	e, there := m.Exported(name)
	if !there || e.Kind != KindFunction {
		return Signature{}, false
	}
	return m.TypeOf(e.Index), true
}

// TypeOf returns the type of a function by its index, which counts the imported ones first.
func (m *Module) TypeOf(function uint32) Signature {
	if int(function) < len(m.Imports) {
		return m.Types[m.Imports[function].Type]
	}
	return m.Types[m.Functions[int(function)-len(m.Imports)].Type]
}

// functionCount returns how many functions there are, imported ones too.
func (m *Module) functionCount() int { return len(m.Imports) + len(m.Functions) }

// Equal reports whether two types are the same.
func (s Signature) Equal(t Signature) bool {
	return bytes.Equal(s.Params, t.Params) && bytes.Equal(s.Results, t.Results)
}

// String writes a signature as (i32, i32) → i64.
func (s Signature) String() string {
	results := typeNames(s.Results)
	if results == "" {
		results = "()"
	}
	return "(" + typeNames(s.Params) + ") → " + results
}

func typeNames(types []ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = TypeName(t)
	}
	return strings.Join(names, ", ")
}

// TypeName returns what people call a type of values.
func TypeName(t ValueType) string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type 0x%02x", t)
}

// String returns what people call a kind.
func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}
