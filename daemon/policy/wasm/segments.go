package wasm

import "fmt"

// What the flags of a segment say.
const (
	FlagPassive  = 1 // or, of elements together with FlagExplicit: declared only
	FlagExplicit = 2 // the table or the memory is named
	FlagItems    = 4 // elements are expressions
)

func (d *decoder) element(r *reader) Element {
	e := Element{Flags: r.u32()}
	if e.Flags > 7 {
		r.fail(fmt.Errorf("an element segment has the unknown flags 0x%x", e.Flags))
		return e
	}
	if e.Flags&FlagPassive == 0 {
		if e.Flags&FlagExplicit != 0 {
			e.Table = r.u32()
		}
		if uint64(e.Table) >= uint64(len(d.Tables)) {
			r.fail(fmt.Errorf("an element segment is for the table %d of %d", e.Table, len(d.Tables)))
		}
		e.Offset = r.expression(&d.refs)
	}
	if e.Flags&(FlagPassive|FlagExplicit) != 0 {
		e.Holds = r.byte()
	}
	if e.Flags&FlagItems != 0 {
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
	case flags&FlagExplicit != 0 && r.u32() != 0:
		r.fail(errMemories)
	}
	if flags&FlagPassive == 0 {
		if len(d.Memories) == 0 {
			r.fail(fmt.Errorf("a data segment is for a memory, there is none"))
		}
		r.expression(&d.refs)
	}
	return Segment{Passive: flags&FlagPassive != 0, Size: uint32(len(r.bytes(r.u32())))}
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
