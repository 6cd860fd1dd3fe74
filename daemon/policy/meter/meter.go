// Package meter rewrites a module so that it pays for what it does.
//
// The rewritten module does what the plain one does, and besides:
//   - it counts ticks of fuel, and asks its host for more when they are used up: one at every function entry and loop head, and wherever
//     a way forward would do more than a bound without paying; bulk operations and growing memory cost by length, before they run;
//   - it counts how deep its calls are nested, and tells its host when that is too deep;
//   - its memory and its table have a most;
//   - all that it can change outside of its memory is exported, so that a host can put it back.
//
// The ticks depend on nothing but the module and what it is asked: they are the same on every engine and every time.
package meter

import (
	"fmt"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// The functions that a metered module imports, beside those of the plain one. No module may import them by itself.
const (
	ModuleName = "retinue_meter"
	// Refill is (left i32) → i32. It is called when the fuel is used up: left is negative, what was used beyond the last slice. It
	// returns how much there is from now on, at least 0, or panics to stop the guest.
	Refill = "refill"
	// TooDeep is () → (). It is called when calls are nested too deep. It panics to stop the guest; if it returns, the guest traps.
	TooDeep = "too_deep"
)

// Config bounds what a metered module can do.
type Config struct {
	MemoryPages  uint32 // the most that its memory can have
	TableEntries uint32 // the most that its table can have
	CallDepth    uint32 // calls inside of each other, before TooDeep; functions that call nothing do not count
}

// DefaultConfig are the bounds of a policy.
func DefaultConfig() Config {
	return Config{MemoryPages: 1_024, TableEntries: 64 << 10, CallDepth: 1_000}
}

// Metered is a module that pays.
type Metered struct {
	Wasm []byte
	// Fuel names the exported global with the ticks that are left, a mutable i32. It starts at 0, so the first tick asks for more.
	Fuel string
	// Depth names the exported global with how many more calls can be nested, a mutable i32. It starts at Config.CallDepth, and is there
	// again after every call that ends without a trap.
	Depth string
	// Globals are all that the module can change outside of its memory.
	Globals []Global
}

// Global is a mutable global variable of the plain module, and the name by which the metered one exports it. Its type is a number of
// at most 64 bits.
type Global struct {
	Name string
	Type wasm.ValueType
}

// Rewrite returns the metered form of a module. The error is one sentence about the module.
func Rewrite(m *wasm.Module, cfg Config) (*Metered, error) {
	for _, i := range m.Imports {
		if i.Module == ModuleName {
			return nil, fmt.Errorf("it imports from %s, which only the meter may: leave out that import", ModuleName)
		}
	}
	for _, b := range m.Memories {
		if b.Least > cfg.MemoryPages {
			return nil, fmt.Errorf("it starts with %d pages of memory, more than the limit of %d", b.Least, cfg.MemoryPages)
		}
	}
	for _, t := range m.Tables {
		if t.Least > cfg.TableEntries {
			return nil, fmt.Errorf("it has a table of %d entries, more than the limit of %d", t.Least, cfg.TableEntries)
		}
	}
	w := newWriter(m, cfg)
	bodies, err := w.bodies()
	if err != nil {
		return nil, err
	}
	return w.module(bodies), nil
}
