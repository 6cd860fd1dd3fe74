// Package meter rewrites a module so that it pays for what it does.
//
// The rewritten module does what the plain one does, and besides: it counts ticks of fuel and asks its host for more when they are
// used up; it counts how deep its calls are nested; its memory and its table have a most; and all that it can change outside of its
// memory is exported, so that a host can put it back.
package meter

import (
	"errors"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// The functions that a metered module imports, beside those of the plain one. No module may import them by itself.
const (
	ModuleName = "retinue_meter"
	// Refill is (left i32) → i32. It is called when no fuel is left: left is negative, what was used beyond the last slice. It
	// returns how much there is from now on, at least 0, or panics to stop the guest.
	Refill = "refill"
	// TooDeep is () → (). It is called when calls are nested too deep. It panics to stop the guest; if it returns, the guest traps.
	TooDeep = "too_deep"
)

// Config bounds what a metered module can do.
type Config struct {
	MemoryPages  uint32 // the most that its memory can have
	TableEntries uint32 // the most that its table can have
	CallDepth    uint32 // calls inside of each other, before TooDeep
}

// Metered is a module that pays.
type Metered struct {
	Wasm    []byte
	Fuel    string // the exported global, a mutable i32, with the ticks that are left; it starts at 0, so the first tick asks for more
	Depth   string // the exported global, a mutable i32, with the calls that can still be nested; it starts at Config.CallDepth
	Globals []Global
}

// Global is a mutable global variable of the plain module, and the name by which the metered one exports it.
type Global struct {
	Name string
	Type wasm.ValueType
}

// DefaultConfig are the bounds of a policy.
func DefaultConfig() Config {
	return Config{MemoryPages: 1_024, TableEntries: 64 << 10, CallDepth: 1_000}
}

// Rewrite returns the metered form of a module.
func Rewrite(m *wasm.Module, cfg Config) (*Metered, error) {
	return nil, errors.New("it cannot be metered yet")
}
