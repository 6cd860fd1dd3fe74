package meter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// writer writes the metered form of a module.
type writer struct {
	*wasm.Module
	cfg     Config
	types   []wasm.Signature  // appended to those of the module
	typeAt  map[string]uint32 // their indices, by what they are
	helpers []helper          // functions that are appended, in the order in which they were first needed
	output  Metered
}

// The functions that are imported after those of the module.
const importedFunctions = 2

func newWriter(m *wasm.Module, cfg Config) *writer {
	w := &writer{Module: m, cfg: cfg, typeAt: map[string]uint32{}}
	w.help(helper{kind: refuel})
	prefix := unused(m)
	w.output.Fuel, w.output.Depth = prefix+"fuel", prefix+"depth"
	for i, g := range m.Globals {
		if g.Mutable {
			w.output.Globals = append(w.output.Globals, Global{Name: prefix + "global." + strconv.Itoa(i), Type: g.Type})
		}
	}
	return w
}

// unused returns what the name of no export of the module begins with.
func unused(m *wasm.Module) string {
	underscores := 0 // after the meter's name
	for _, e := range m.Exports {
		if rest, like := strings.CutPrefix(e.Name, ModuleName); like {
			underscores = max(underscores, 1+len(rest)-len(strings.TrimLeft(rest, "_")))
		}
	}
	return ModuleName + strings.Repeat("_", underscores) + "."
}

func (w *writer) fuel() uint32    { return uint32(len(w.Globals)) }
func (w *writer) depth() uint32   { return uint32(len(w.Globals)) + 1 }
func (w *writer) refill() uint32  { return uint32(len(w.Imports)) }
func (w *writer) tooDeep() uint32 { return uint32(len(w.Imports)) + 1 }

// function returns the index that a function of the module has now.
func (w *writer) function(index uint32) uint32 {
	if int(index) < len(w.Imports) {
		return index
	}
	return index + importedFunctions
}

// typeIndex returns the index of a type, which it appends if need be.
func (w *writer) typeIndex(s wasm.Signature) uint32 {
	key := s.String()
	at, known := w.typeAt[key]
	if !known {
		at = uint32(len(w.Types) + len(w.types))
		w.types, w.typeAt[key] = append(w.types, s), at
	}
	return at
}

// memoryMost returns the most pages that the memory can have.
func (w *writer) memoryMost() uint32 {
	if len(w.Memories) == 0 {
		return 0
	}
	return most(w.Memories[0], w.cfg.MemoryPages)
}

func most(b wasm.Bounds, limit uint32) uint32 {
	if b.Bounded {
		return min(b.Most, limit)
	}
	return limit
}

// module puts the sections together. The types come last in time, as everything else may append some.
func (w *writer) module(bodies code) *Metered {
	parts := []struct {
		id      byte
		content code
	}{
		{2, w.importSection()},
		{3, w.functionSection()},
		{4, w.tableSection()},
		{5, w.memorySection()},
		{6, w.globalSection()},
		{7, w.exportSection()},
		{9, w.elementSection()},
		{12, w.dataCountSection()},
		{10, bodies},
		{11, w.DataSection()},
	}
	out := code("\x00asm\x01\x00\x00\x00")
	out = slices.Grow(out, len(bodies)+w.Size)
	out.raw(1)
	out.sized(w.typeSection())
	for _, part := range parts {
		if len(part.content) > 0 {
			out.raw(part.id)
			out.sized(part.content)
		}
	}
	if names := w.nameSection(); len(names) > 0 {
		out.raw(0)
		out.sized(names)
	}
	w.output.Wasm = out
	return &w.output
}
