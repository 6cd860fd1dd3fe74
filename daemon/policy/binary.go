package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// outline is what can be said of a module without compiling it: what it needs, and what it offers.
type outline struct {
	types     []signature
	imports   []imported
	functions []uint32 // the type of each, imported ones first
	memories  []limits // imported ones too
	tables    []limits
	exports   map[string]exported
	start     bool
}

// signature is a function's type.
type signature struct {
	params, results []api.ValueType
}

// imported is something that a module needs.
type imported struct {
	module, name string
	kind         byte
	typ          uint32 // of a function
}

// exported is something that a module offers.
type exported struct {
	kind  byte
	index uint32
}

// limits are the size of a memory in pages, or of a table in entries.
type limits struct {
	least uint64
}

// The sections that are read, and the kinds of what crosses a module's border.
const (
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionExport   = 7
	sectionStart    = 8

	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
)

const (
	wasmMagic   = "\x00asm"
	coreVersion = "\x01\x00\x00\x00"
)

// errTruncated says that a number or a length points past the end of its section.
var errTruncated = errors.New("a length points past its end")

// readOutline reads the sections that say what a module needs and offers. Everything else is left to the engine, which
// validates the whole.
func readOutline(wasm []byte) (outline, error) {
	o := outline{exports: map[string]exported{}}
	rest, isWasm := strings.CutPrefix(string(wasm[:min(len(wasm), 8)]), wasmMagic)
	switch {
	case !isWasm:
		return o, errors.New("it is not a WebAssembly module: the first bytes are not those of one")
	case rest != coreVersion:
		return o, errors.New("it is not a core WebAssembly module of version 1: components are not supported, build a core module")
	}
	r := &reader{rest: wasm[8:]}
	for len(r.rest) > 0 {
		id := r.byte()
		section := &reader{rest: r.bytes(r.u32())}
		if r.err != nil {
			return o, fmt.Errorf("it is damaged: section %d: %w", id, r.err)
		}
		o.section(id, section)
		if section.err != nil {
			return o, fmt.Errorf("it is damaged: section %d: %w", id, section.err)
		}
	}
	return o, nil
}

func (o *outline) section(id byte, r *reader) {
	switch id {
	case sectionType:
		r.each(func() { o.types = append(o.types, r.signature()) })
	case sectionImport:
		r.each(func() { o.readImport(r) })
	case sectionFunction:
		r.each(func() { o.functions = append(o.functions, r.u32()) })
	case sectionTable:
		r.each(func() { o.tables = append(o.tables, r.table()) })
	case sectionMemory:
		r.each(func() { o.memories = append(o.memories, r.limits()) })
	case sectionExport:
		r.each(func() {
			name := string(r.bytes(r.u32()))
			o.exports[name] = exported{kind: r.byte(), index: r.u32()}
		})
	case sectionStart:
		o.start = true
	}
}

func (o *outline) readImport(r *reader) {
	i := imported{module: string(r.bytes(r.u32())), name: string(r.bytes(r.u32())), kind: r.byte()}
	switch i.kind {
	case kindFunction:
		i.typ = r.u32()
		o.functions = append(o.functions, i.typ)
	case kindTable:
		o.tables = append(o.tables, r.table())
	case kindMemory:
		o.memories = append(o.memories, r.limits())
	case kindGlobal:
		r.bytes(2)
	default:
		r.fail(fmt.Errorf("import %q.%q is of the unknown kind %d", i.module, i.name, i.kind))
	}
	o.imports = append(o.imports, i)
}

// typeOf returns the type with the given number.
func (o *outline) typeOf(typ uint32) (signature, bool) {
	if uint64(typ) >= uint64(len(o.types)) {
		return signature{}, false
	}
	return o.types[typ], true
}

// function returns the type of the exported function with the given name.
func (o *outline) function(name string) (signature, bool) {
	e, there := o.exports[name]
	if !there || e.kind != kindFunction || uint64(e.index) >= uint64(len(o.functions)) {
		return signature{}, false
	}
	return o.typeOf(o.functions[e.index])
}

// String writes a signature as (i32, i32) → i64.
func (s signature) String() string {
	return "(" + valueTypes(s.params) + ") → " + orNothing(valueTypes(s.results))
}

func (s signature) equal(t signature) bool {
	return string(s.params) == string(t.params) && string(s.results) == string(t.results)
}

func valueTypes(types []api.ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return strings.Join(names, ", ")
}

func orNothing(s string) string {
	if s == "" {
		return "()"
	}
	return s
}

// reader takes bytes off the front of a slice. After its first error it gives zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// each reads a count and calls read that often, until something is wrong.
func (r *reader) each(read func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		read()
	}
}

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.rest)) {
		r.fail(errTruncated)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u32() uint32 {
	n := r.u64()
	if n > 1<<32-1 {
		r.fail(errors.New("a number is too big"))
		return 0
	}
	return uint32(n)
}

func (r *reader) u64() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) signature() signature {
	if form := r.byte(); form != 0x60 && r.err == nil {
		r.fail(fmt.Errorf("a type is no function but 0x%x", form))
	}
	return signature{params: r.bytes(r.u32()), results: r.bytes(r.u32())}
}

func (r *reader) table() limits {
	r.byte() // what it holds
	return r.limits()
}

// limits reads a least size and, if there is one, a most.
func (r *reader) limits() limits {
	flags := r.byte()
	l := limits{least: r.u64()}
	if flags&1 != 0 {
		r.u64()
	}
	return l
}
