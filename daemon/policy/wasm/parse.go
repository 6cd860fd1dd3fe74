package wasm

import (
	"bytes"
	"errors"
	"fmt"
)

// What a module starts with.
const (
	magic   = "\x00asm"
	version = "\x01\x00\x00\x00"
)

// Parse reads a module and judges it. The error is one sentence about the module: what is wrong where, the figure and the limit,
// and what to do about it where there is something.
func Parse(b []byte, limits Limits) (*Module, error) {
	header, isModule := bytes.CutPrefix(b[:min(len(b), len(magic)+len(version))], []byte(magic))
	switch {
	case len(b) == 0:
		return nil, errors.New("it is not a WebAssembly module: it is empty")
	case len(b) > limits.Size:
		return nil, fmt.Errorf("it has more than %d bytes, the limit for a module", limits.Size)
	case !isModule:
		return nil, errors.New("it is not a WebAssembly module: the first bytes are not those of one")
	case string(header) != version:
		return nil, errors.New("it is not a core WebAssembly module of version 1: components are not supported, build a core module")
	}
	d := &decoder{Module: &Module{Size: len(b)}, limits: limits, exports: map[string]bool{}}
	err := d.sections(b)
	switch {
	case err != nil && d.foreign != "": // which counts among what indices name
		return nil, d.refuseForeign()
	case err != nil:
		return nil, err
	}
	if err = d.form(); err != nil {
		return nil, err
	}
	d.readNames()
	j := judge{Module: d.Module, limits: limits}
	for i := range d.Functions {
		if err = j.function(i); err != nil {
			return nil, err
		}
	}
	return d.Module, nil
}

// form refuses what cannot be hosted, whatever its functions do. What helps a person most is said first.
func (d *decoder) form() error {
	switch {
	case d.exports["_start"] && !d.exports["_initialize"]:
		return errors.New("it is built as a command, which runs once and ends: build with -buildmode=c-shared (Go) or as a reactor")
	case d.starts:
		return errors.New("it has a start section, which runs before the host can bound it: export _initialize instead")
	case d.shared:
		return errors.New("its memory is made for threads, which are not supported: build without them")
	case d.wide:
		return errors.New("its memory has addresses of 64 bits, which are not supported: build for wasm32")
	case d.tags:
		return errors.New("it has exceptions, which are not supported: build without them")
	case d.foreign != "":
		return d.refuseForeign()
	case len(d.Memories) > 1:
		return fmt.Errorf("it has %d memories, one is allowed", len(d.Memories))
	case len(d.Tables) > 1:
		return fmt.Errorf("it has %d tables, one is allowed", len(d.Tables))
	case len(d.Functions) > d.limits.Functions:
		return fmt.Errorf("it has %d functions, more than the limit of %d: leave out what is not used", len(d.Functions), d.limits.Functions)
	}
	return d.sizes()
}

func (d *decoder) refuseForeign() error {
	return fmt.Errorf("it imports %s, which is no function: memories, tables and globals must be its own", d.foreign)
}

// sizes holds what is there from the start to its limits.
func (d *decoder) sizes() error {
	for _, b := range d.Memories {
		if b.Least > d.limits.MemoryPages {
			return fmt.Errorf("it starts with %d pages of memory, more than the limit of %d (%d bytes)",
				b.Least, d.limits.MemoryPages, uint64(d.limits.MemoryPages)*PageSize)
		}
	}
	for _, t := range d.Tables {
		if t.Least > d.limits.TableEntries {
			return fmt.Errorf("it has a table of %d entries, more than the limit of %d", t.Least, d.limits.TableEntries)
		}
	}
	for i, g := range d.Globals {
		if g.Mutable && (g.Type == V128 || g.Type == FuncRef || g.Type == ExternRef) {
			return fmt.Errorf("its global %d is a mutable %s, which the host cannot put back between calls: keep it in memory", i, TypeName(g.Type))
		}
	}
	return nil
}
