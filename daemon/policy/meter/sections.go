package meter

import "github.com/retinue-sched/retinue/daemon/policy/wasm"

func (w *writer) typeSection() (c code) {
	c.u32(uint32(len(w.Types) + len(w.types)))
	for _, s := range w.Types {
		c.signature(s)
	}
	for _, s := range w.types {
		c.signature(s)
	}
	return c
}

func (c *code) signature(s wasm.Signature) {
	c.raw(functionTypeForm)
	c.sized(s.Params)
	c.sized(s.Results)
}

func (w *writer) importSection() (c code) {
	c.u32(uint32(len(w.Imports) + importedFunctions))
	for _, i := range w.Imports {
		c.importFunction(i)
	}
	i32 := []wasm.ValueType{wasm.I32}
	c.importFunction(wasm.Import{Module: ModuleName, Name: Refill, Type: w.typeIndex(wasm.Signature{Params: i32, Results: i32})})
	c.importFunction(wasm.Import{Module: ModuleName, Name: TooDeep, Type: w.typeIndex(wasm.Signature{})})
	return c
}

func (c *code) importFunction(i wasm.Import) {
	c.text(i.Module)
	c.text(i.Name)
	c.raw(byte(wasm.KindFunction))
	c.u32(i.Type)
}

func (w *writer) functionSection() (c code) {
	c.u32(uint32(len(w.Functions) + len(w.helpers)))
	for _, f := range w.Functions {
		c.u32(f.Type)
	}
	for _, h := range w.helpers {
		c.u32(w.typeIndex(h.signature()))
	}
	return c
}

func (w *writer) tableSection() (c code) {
	if len(w.Tables) == 0 {
		return nil
	}
	c.u32(uint32(len(w.Tables)))
	for _, t := range w.Tables {
		c.raw(t.Holds)
		c.bounds(t.Least, most(t.Bounds, w.cfg.TableEntries))
	}
	return c
}

func (w *writer) memorySection() (c code) {
	if len(w.Memories) == 0 {
		return nil
	}
	c.u32(1)
	c.bounds(w.Memories[0].Least, w.memoryMost())
	return c
}

func (c *code) bounds(least, most uint32) {
	c.raw(1)
	c.u32(least)
	c.u32(most)
}

func (w *writer) globalSection() (c code) {
	c.u32(uint32(len(w.Globals)) + 2)
	for _, g := range w.Globals {
		mutable := byte(0)
		if g.Mutable {
			mutable = 1
		}
		c.raw(g.Type, mutable)
		w.expression(&c, g.Init)
	}
	for _, start := range []int32{0, int32(w.cfg.CallDepth)} { // fuel, depth
		c.raw(wasm.I32, 1)
		c.i32(start)
		c.raw(end)
	}
	return c
}

// expression appends a constant expression, in which functions may be named.
func (w *writer) expression(c *code, e wasm.Expression) {
	walk := wasm.WalkOver(e)
	for walk.Next() {
		if walk.Op == wasm.OpRefFunc {
			c.with(walk.Op, w.function(walk.Index))
		} else {
			c.raw(e[walk.At:walk.End()]...)
		}
	}
}

func (w *writer) exportSection() (c code) {
	c.u32(uint32(len(w.Exports) + 2 + len(w.output.Globals)))
	for _, e := range w.Exports {
		index := e.Index
		if e.Kind == wasm.KindFunction {
			index = w.function(index)
		}
		c.export(e.Name, e.Kind, index)
	}
	c.export(w.output.Fuel, wasm.KindGlobal, w.fuel())
	c.export(w.output.Depth, wasm.KindGlobal, w.depth())
	next := 0
	for i, g := range w.Globals {
		if g.Mutable {
			c.export(w.output.Globals[next].Name, wasm.KindGlobal, uint32(i))
			next++
		}
	}
	return c
}

func (c *code) export(name string, kind wasm.Kind, index uint32) {
	c.text(name)
	c.raw(byte(kind))
	c.u32(index)
}

func (w *writer) elementSection() (c code) {
	if len(w.Elements) == 0 {
		return nil
	}
	c.u32(uint32(len(w.Elements)))
	for _, e := range w.Elements {
		c.u32(e.Flags)
		if e.Flags&wasm.FlagPassive == 0 {
			if e.Flags&wasm.FlagExplicit != 0 {
				c.u32(e.Table)
			}
			w.expression(&c, e.Offset)
		}
		if e.Flags&(wasm.FlagPassive|wasm.FlagExplicit) != 0 {
			c.raw(e.Holds)
		}
		c.u32(uint32(len(e.Functions) + len(e.Items))) // one of them
		for _, f := range e.Functions {
			c.u32(w.function(f))
		}
		for _, item := range e.Items {
			w.expression(&c, item)
		}
	}
	return c
}

func (w *writer) dataCountSection() (c code) {
	if w.DataCount {
		c.u32(uint32(len(w.Data)))
	}
	return c
}

// maxNames bounds what is kept of the functions' names, in bytes.
const maxNames = 1 << 20

// nameSection keeps the functions' names, for the engine's stack traces.
func (w *writer) nameSection() (c code) {
	var names code
	count := uint32(0)
	for i := range uint32(len(w.Imports) + len(w.Functions)) {
		if name := w.NameOf(i); name != "" {
			names.u32(w.function(i))
			names.text(name)
			count++
		}
	}
	if count == 0 || len(names) > maxNames {
		return nil
	}
	var part code
	part.u32(count)
	part.raw(names...)
	c.text(wasm.NameSection)
	c.raw(1) // functions
	c.sized(part)
	return c
}
