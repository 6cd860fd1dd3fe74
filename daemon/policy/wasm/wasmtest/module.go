// Package wasmtest makes modules by hand, for tests: as wrong or as hostile as a test wants them, byte for byte.
package wasmtest

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// Module is a module to be made. Its zero value is an empty one.
type Module struct {
	Types     []wasm.Signature // for blocks and call_indirect; those of functions come after them
	Imports   []wasm.Offer
	Functions []Function
	Table     *wasm.Bounds
	Memory    *wasm.Bounds
	Globals   []wasm.Global
	Exports   []wasm.Export // beside those of functions, and the memory as "memory"
	Elements  []uint32      // functions that are in the table from the start
	Data      []Data
	Custom    []wasm.Custom
	Raw       map[byte][]byte // the content of sections, instead of what they would be
}

// Function is a function to be made.
type Function struct {
	Export string // or none
	wasm.Signature
	Locals []wasm.ValueType
	Code   []byte // without the last end
}

// Data is a segment of data.
type Data struct {
	Passive bool
	At      int32
	Bytes   []byte
}

// Bytes returns the module.
func (m Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, id := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		content, replaced := m.Raw[id]
		if !replaced {
			content = m.section(id)
		}
		if content != nil {
			out = append(append(out, id), Sized(content)...)
		}
	}
	for _, c := range m.Custom {
		out = append(append(out, 0), Sized(append(Text(c.Name), c.Content...))...)
	}
	return out
}

// With returns the module with one more function.
func (m Module) With(f Function) Module {
	m.Functions = append(slices.Clip(m.Functions), f)
	return m
}

func (m Module) section(id byte) []byte {
	switch id {
	case 1:
		return Vector(m.types())
	case 2:
		return Vector(m.imports())
	case 3:
		return Vector(m.functions())
	case 4:
		return bounds([]byte{wasm.FuncRef}, m.Table)
	case 5:
		return bounds(nil, m.Memory)
	case 6:
		return Vector(m.globals())
	case 7:
		return Vector(m.exports())
	case 9:
		return m.elements()
	case 12:
		return m.dataCount()
	case 10:
		return Vector(m.bodies())
	case 11:
		return Vector(m.data())
	}
	return nil
}

func (m Module) types() (all [][]byte) {
	for _, s := range m.Types {
		all = append(all, signature(s))
	}
	for _, i := range m.Imports {
		all = append(all, signature(i.Signature))
	}
	for _, f := range m.Functions {
		all = append(all, signature(f.Signature))
	}
	return all
}

func signature(s wasm.Signature) []byte {
	return slices.Concat([]byte{0x60}, Sized(s.Params), Sized(s.Results))
}

func (m Module) imports() (all [][]byte) {
	for n, i := range m.Imports {
		all = append(all, slices.Concat(Text(i.Module), Text(i.Name), []byte{0}, U32(len(m.Types)+n)))
	}
	return all
}

func (m Module) functions() (all [][]byte) {
	for n := range m.Functions {
		all = append(all, U32(len(m.Types)+len(m.Imports)+n))
	}
	return all
}

func bounds(before []byte, b *wasm.Bounds) []byte {
	switch {
	case b == nil:
		return nil
	case b.Bounded:
		return slices.Concat([]byte{1}, before, []byte{1}, U32(int(b.Least)), U32(int(b.Most)))
	}
	return slices.Concat([]byte{1}, before, []byte{0}, U32(int(b.Least)))
}

func (m Module) globals() (all [][]byte) {
	for _, g := range m.Globals {
		mutable := byte(0)
		if g.Mutable {
			mutable = 1
		}
		all = append(all, slices.Concat([]byte{g.Type, mutable}, g.Init, []byte{0x0b}))
	}
	return all
}

func (m Module) exports() (all [][]byte) {
	add := func(e wasm.Export) {
		all = append(all, slices.Concat(Text(e.Name), []byte{byte(e.Kind)}, U32(int(e.Index))))
	}
	for n, f := range m.Functions {
		if f.Export != "" {
			add(wasm.Export{Name: f.Export, Index: uint32(len(m.Imports) + n)})
		}
	}
	if m.Memory != nil {
		add(wasm.Export{Name: "memory", Kind: wasm.KindMemory})
	}
	for _, e := range m.Exports {
		add(e)
	}
	return all
}

func (m Module) elements() []byte {
	if len(m.Elements) == 0 {
		return nil
	}
	var indices [][]byte
	for _, f := range m.Elements {
		indices = append(indices, U32(int(f)))
	}
	return slices.Concat([]byte{1, 0}, I32(0), []byte{0x0b}, Vector(indices))
}

func (m Module) dataCount() []byte {
	if len(m.Data) == 0 {
		return nil
	}
	return U32(len(m.Data))
}

func (m Module) bodies() (all [][]byte) {
	for _, f := range m.Functions {
		var locals [][]byte
		for _, t := range f.Locals {
			locals = append(locals, []byte{1, t})
		}
		all = append(all, Sized(slices.Concat(U32(len(locals)), bytes.Join(locals, nil), f.Code, []byte{0x0b})))
	}
	return all
}

func (m Module) data() (all [][]byte) {
	for _, d := range m.Data {
		if d.Passive {
			all = append(all, append([]byte{1}, Sized(d.Bytes)...))
		} else {
			all = append(all, slices.Concat([]byte{0}, I32(d.At), []byte{0x0b}, Sized(d.Bytes)))
		}
	}
	return all
}

// Vector returns entries after their number, or nothing if there are none.
func Vector(entries [][]byte) []byte {
	if len(entries) == 0 {
		return nil
	}
	return append(U32(len(entries)), bytes.Join(entries, nil)...)
}

// Sized returns bytes after their number.
func Sized(b []byte) []byte { return append(U32(len(b)), b...) }

// Text returns a name after its length.
func Text(s string) []byte { return Sized([]byte(s)) }

// U32 returns an unsigned number.
func U32(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// Signed returns a signed number.
func Signed(n int64) (out []byte) {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
