package wasm

import (
	"errors"
	"fmt"
)

// The sections, by what the binary format numbers them.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// order holds the sections in the order in which they stand.
var order = [...]byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionTag, sectionGlobal, sectionExport, sectionStart, sectionElement,
	sectionDataCount, sectionCode, sectionData,
}

// decoder reads sections into a module.
type decoder struct {
	*Module
	limits  Limits
	types   []uint32 // of its own functions
	refs    references
	exports map[string]bool
	foreign string // an import that is no function
	starts  bool
	shared  bool // the memory is made for threads
	wide    bool // the memory has addresses of 64 bits
	tags    bool
	segment uint32 // as many of data as were announced
}

// sections reads all of them, each at most once and in their order.
func (d *decoder) sections(b []byte) error {
	r := &reader{b: b, at: len(magic) + len(version)}
	for place := 0; !r.done(); {
		id := r.byte()
		start := r.bytes(r.u32())
		if r.err != nil {
			return fmt.Errorf("it is damaged: section %d: %w", id, r.err)
		}
		if id != sectionCustom {
			for place < len(order) && order[place] != id {
				place++
			}
			if place++; place > len(order) {
				return fmt.Errorf("it is damaged: section %d is unknown, twice there, or not in its place", id)
			}
		}
		section := &reader{b: start}
		d.section(id, section, r.at-len(start))
		switch {
		case section.err != nil:
			return fmt.Errorf("it is damaged: section %d: %w", id, section.err)
		case !section.done():
			return fmt.Errorf("it is damaged: section %d is longer than what it holds", id)
		}
	}
	return d.complete()
}

func (d *decoder) section(id byte, r *reader, offset int) {
	switch id {
	case sectionCustom:
		d.custom(r)
	case sectionType:
		d.each(r, "types", func() { d.Types = append(d.Types, d.signature(r)) })
	case sectionImport:
		d.each(r, "imports", func() { d.readImport(r) })
	case sectionFunction:
		r.each(func() { d.types = append(d.types, d.typeIndex(r)) })
	case sectionTable:
		d.each(r, "tables", func() { d.Tables = append(d.Tables, d.table(r)) })
	case sectionMemory:
		d.each(r, "memories", func() { d.Memories = append(d.Memories, d.memory(r)) })
	case sectionGlobal:
		d.each(r, "globals", func() { d.Globals = append(d.Globals, d.global(r)) })
	case sectionExport:
		d.each(r, "exports", func() { d.readExport(r) })
	case sectionStart:
		d.starts = true
		r.u32()
	case sectionElement:
		r.upTo(d.limits.Segments, "element segments", func() { d.Elements = append(d.Elements, d.element(r)) })
	case sectionDataCount:
		d.DataCount, d.segment = true, r.u32()
	case sectionCode:
		d.code(r, offset)
	case sectionData:
		d.data = r.b
		r.upTo(d.limits.Segments, "data segments", func() { d.Data = append(d.Data, d.dataSegment(r)) })
	case sectionTag:
		d.tags = true
		r.at = len(r.b)
	}
}

// each reads a count and that many entries, no more than are allowed.
func (d *decoder) each(r *reader, what string, read func()) { r.upTo(d.limits.Entries, what, read) }

func (r *reader) upTo(limit int, what string, read func()) {
	n := r.u32()
	if uint64(n) > uint64(limit) {
		r.fail(fmt.Errorf("there are %d %s, more than the limit of %d", n, what, limit))
		return
	}
	for ; n > 0 && r.err == nil; n-- {
		read()
	}
}

func (d *decoder) custom(r *reader) {
	name := r.text()
	if len(d.Custom) >= d.limits.Entries {
		r.fail(fmt.Errorf("there are more than %d custom sections", d.limits.Entries))
	}
	d.Custom = append(d.Custom, Custom{Name: name, Content: r.b[min(r.at, len(r.b)):]})
	r.at = len(r.b)
}

func (d *decoder) signature(r *reader) Signature {
	if form := r.byte(); form != 0x60 && r.err == nil {
		r.fail(fmt.Errorf("a type is no function but 0x%x: build for WebAssembly 2.0 without later features", form))
	}
	return Signature{Params: d.valueTypes(r, "parameters"), Results: d.valueTypes(r, "results")}
}

func (d *decoder) valueTypes(r *reader, what string) []ValueType {
	types := r.bytes(r.u32())
	if len(types) > d.limits.Values {
		r.fail(fmt.Errorf("a type has %d %s, more than the limit of %d", len(types), what, d.limits.Values))
	}
	for _, t := range types {
		r.want(t)
	}
	return types
}

// want wants a type that is known.
func (r *reader) want(t ValueType) ValueType {
	switch t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
	default:
		r.fail(fmt.Errorf("the type of values 0x%02x is unknown", t))
	}
	return t
}

func (d *decoder) typeIndex(r *reader) uint32 {
	typ := r.u32()
	if uint64(typ) >= uint64(len(d.Types)) {
		r.fail(fmt.Errorf("a function has the type %d of %d", typ, len(d.Types)))
	}
	return typ
}

func (d *decoder) readImport(r *reader) {
	i := Import{Module: r.text(), Name: r.text()}
	kind := r.byte()
	switch Kind(kind) {
	case KindFunction:
		i.Type = d.typeIndex(r)
		d.Imports = append(d.Imports, i)
		return
	case KindTable:
		d.table(r)
	case KindMemory:
		d.memory(r)
	case KindGlobal:
		r.bytes(2)
	default:
		r.fail(fmt.Errorf("the import %s is of the unknown kind %d", printable(i.Module+"."+i.Name), kind))
	}
	if d.foreign == "" {
		d.foreign = printable(i.Module + "." + i.Name)
	}
}

func (d *decoder) table(r *reader) Table {
	holds := r.byte()
	if holds != FuncRef && holds != ExternRef {
		r.fail(fmt.Errorf("a table holds the unknown type 0x%02x", holds))
	}
	flags := r.byte()
	if flags > 1 {
		r.fail(fmt.Errorf("a table has the unknown flags 0x%x", flags))
	}
	return Table{Holds: holds, Bounds: r.bounds(flags)}
}

func (d *decoder) memory(r *reader) Bounds {
	flags := r.byte()
	d.shared = d.shared || flags&2 != 0
	d.wide = d.wide || flags&4 != 0
	switch {
	case flags&^7 != 0:
		r.fail(fmt.Errorf("a memory has the unknown flags 0x%x", flags))
	case d.wide: // its numbers may be longer; it is refused all the same
		r.at = len(r.b)
		return Bounds{}
	}
	b := r.bounds(flags)
	if b.Least > maxPages || b.Bounded && b.Most > maxPages {
		r.fail(fmt.Errorf("a memory has more than %d pages", maxPages))
	}
	return b
}

// maxPages is how many pages the addresses of a memory reach.
const maxPages = 1 << 16

func (r *reader) bounds(flags byte) Bounds {
	b := Bounds{Least: r.u32(), Bounded: flags&1 != 0}
	if b.Bounded {
		if b.Most = r.u32(); b.Most < b.Least && r.err == nil {
			r.fail(fmt.Errorf("the least size %d is more than the most of %d", b.Least, b.Most))
		}
	}
	return b
}

func (d *decoder) global(r *reader) Global {
	g := Global{Type: r.want(r.byte())}
	mutable := r.byte()
	if mutable > 1 {
		r.fail(fmt.Errorf("a global has the unknown flags 0x%x", mutable))
	}
	g.Mutable = mutable == 1
	g.Init = r.expression(&d.refs)
	return g
}

func (d *decoder) readExport(r *reader) {
	e := Export{Name: r.text(), Kind: Kind(r.byte()), Index: r.u32()}
	if d.exports[e.Name] {
		r.fail(fmt.Errorf("the export %s is there twice", printable(e.Name)))
	}
	d.exports[e.Name] = true
	d.Exports = append(d.Exports, e)
}

// errBodies says that the bodies do not fit the functions.
var errBodies = errors.New("it is damaged: there are not as many bodies as functions")

// complete wants what only holds once all sections are there: counts that agree, and indices inside of what they count.
func (d *decoder) complete() error {
	switch {
	case len(d.types) != len(d.Functions):
		return errBodies
	case d.DataCount && int64(d.segment) != int64(len(d.Data)):
		return fmt.Errorf("it is damaged: %d data segments are announced, %d are there", d.segment, len(d.Data))
	case d.refs.functions > uint64(d.functionCount()):
		return fmt.Errorf("it is damaged: a segment or a global names the function %d of %d", d.refs.functions-1, d.functionCount())
	case d.refs.globals > uint64(len(d.Globals)):
		return fmt.Errorf("it is damaged: a constant names the global %d of %d", d.refs.globals-1, len(d.Globals))
	}
	for _, e := range d.Exports {
		if count := d.count(e.Kind); uint64(e.Index) >= uint64(count) {
			return fmt.Errorf("it is damaged: the export %s is the %v %d of %d", printable(e.Name), e.Kind, e.Index, count)
		}
	}
	return nil
}

func (d *decoder) count(kind Kind) int {
	switch kind {
	case KindFunction:
		return d.functionCount()
	case KindTable:
		return len(d.Tables)
	case KindMemory:
		return len(d.Memories)
	case KindGlobal:
		return len(d.Globals)
	}
	return 0
}
