package wasm

import "fmt"

// What the flags of a segment say.
const (
	flagPassive  = 1 // or, of elements together with flagExplicit: declared only
	flagExplicit = 2 // the table or the memory is named
	flagItems    = 4 // elements are expressions

	// FlagPassive, FlagExplicit and FlagItems are the flags of Element.
	FlagPassive  = flagPassive
	FlagExplicit = flagExplicit
	FlagItems    = flagItems
)

func (d *decoder) element(r *reader) Element {
	e := Element{Flags: r.u32()}
	if e.Flags > 7 {
		r.fail(fmt.Errorf("an element segment has the unknown flags 0x%x", e.Flags))
		return e
	}
	if e.Flags&flagPassive == 0 {
		if e.Flags&flagExplicit != 0 {
			e.Table = r.u32()
		}
		if uint64(e.Table) >= uint64(len(d.Tables)) {
			r.fail(fmt.Errorf("an element segment is for the table %d of %d", e.Table, len(d.Tables)))
		}
		e.Offset = r.expression(&d.refs)
	}
	if e.Flags&(flagPassive|flagExplicit) != 0 {
		e.Holds = r.byte()
	}
	if e.Flags&flagItems != 0 {
		r.each(func() { e.Items = append(e.Items, r.expression(&d.refs)) })
		return e
	}
	r.each(func() {
		f := r.u32()
		d.refs.functions = max(d.refs.functions, uint64(f)+1)
		e.Functions = append(e.Functions, f)
	})
	return e
}

func (d *decoder) dataSegment(r *reader) Segment {
	flags := r.u32()
	switch {
	case flags > 2:
		r.fail(fmt.Errorf("a data segment has the unknown flags 0x%x", flags))
	case flags&flagExplicit != 0 && r.u32() != 0:
		r.fail(errMemories)
	}
	if flags&flagPassive == 0 {
		if len(d.Memories) == 0 {
			r.fail(fmt.Errorf("a data segment is for a memory, there is none"))
		}
		r.expression(&d.refs)
	}
	return Segment{Passive: flags&flagPassive != 0, Size: uint32(len(r.bytes(r.u32())))}
}

// code splits the code section into bodies. What is in them is judged later.
func (d *decoder) code(r *reader, offset int) {
	n := r.u32()
	if uint64(n) != uint64(len(d.types)) {
		r.fail(fmt.Errorf("there are %d bodies for %d functions", n, len(d.types)))
		return
	}
	if len(d.types) > d.limits.Functions {
		r.at = len(r.b) // it is refused for that, with a better sentence
		d.Functions = make([]Function, len(d.types))
		return
	}
	for i := range d.types {
		body := reader{b: r.bytes(r.u32())}
		end := offset + r.at
		f := Function{Type: d.types[i]}
		body.each(func() {
			f.Locals = append(f.Locals, Locals{Count: body.u32(), Type: body.want(body.byte())})
		})
		f.Code = body.b[min(body.at, len(body.b)):]
		f.Offset = end - len(f.Code)
		if body.err != nil {
			r.fail(fmt.Errorf("the locals of the body at offset 0x%x: %w", end-len(body.b), body.err))
			return
		}
		if r.err != nil {
			return
		}
		d.Functions = append(d.Functions, f)
	}
}
