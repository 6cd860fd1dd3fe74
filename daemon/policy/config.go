package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
)

// Config bounds what modules may cost. There is no way to run one without bounds.
type Config struct {
	// MemoryLimit is how many bytes of memory one instance may have. A module built by Go dies with an unreadable
	// message below 8 MiB, so less is refused.
	MemoryLimit uint64
	// Fuel is how much work one question may be, in ticks: a tick is a call of a function, a turn of a loop, or some two hundred instructions
	// without either. The same question takes the same fuel on every machine. The built-in policy answers when it is used up. Starting and
	// accepting settings have as much.
	Fuel int64
	// Deadline is how long one question may take. The built-in policy answers after it.
	Deadline time.Duration
	// StartTimeout is how long an instance may take to start and to accept its settings.
	StartTimeout time.Duration
	// CompileTimeout is how long a module may take to compile. Compiling cannot be broken off: a module that takes longer
	// is refused, and the work runs to its end unused.
	CompileTimeout time.Duration
	// OutputLimit is how many bytes a decision may have.
	OutputLimit int
	// ModuleLimit is how many bytes a module may have, unpacked.
	ModuleLimit int
	// Modules is how many modules may be kept, shipped ones among them.
	Modules int
	// Warm is for how many policies, of those that were asked last, instances are kept ready; the others are started again when they are asked.
	// Applications with the same policy and settings count once.
	Warm int
	// CacheDir keeps compiled modules from one life of the daemon to the next. It holds machine code: it is made with mode
	// 0700, and one that others may write to is refused. Empty keeps them in memory.
	CacheDir string
	// Interpreter runs modules without compiling them to machine code: slower by a factor of about 45, and the way out on a
	// processor for which the compiler is not to be trusted.
	Interpreter bool
	// Default decides for every application that has no binding of its own.
	Default Binding
}

// The least that works.
const (
	minMemory = 8 << 20
	maxMemory = 4<<30 - pageSize // what has all pages tells a size of 0
	pageSize  = 64 << 10
)

// DefaultConfig returns the bounds that suit policies that look at some ten thousand executors.
func DefaultConfig() Config {
	return Config{
		MemoryLimit:    64 << 20,
		Fuel:           20_000_000,
		Deadline:       250 * time.Millisecond,
		StartTimeout:   5 * time.Second,
		CompileTimeout: time.Minute,
		OutputLimit:    hostabi.MaxDecisionSize,
		ModuleLimit:    8 << 20,
		Modules:        64,
		Warm:           32,
		Default:        Binding{Policy: builtinName},
	}
}

// Validate returns everything that is wrong with c, joined.
func (c Config) Validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{key}, args...)...))
	}
	if c.MemoryLimit < minMemory || c.MemoryLimit > maxMemory {
		wrong("memoryLimit", "%d bytes is not between 8 MiB and a page less than 4 GiB", c.MemoryLimit)
	} else if c.MemoryLimit%pageSize != 0 {
		wrong("memoryLimit", "%d bytes is no multiple of a page (64 KiB)", c.MemoryLimit)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"deadline", c.Deadline}, {"startTimeout", c.StartTimeout}, {"compileTimeout", c.CompileTimeout}} {
		if d.value <= 0 {
			wrong(d.key, "%v is not positive", d.value)
		}
	}
	if c.OutputLimit <= 0 || c.OutputLimit > hostabi.MaxDecisionSize {
		wrong("outputLimit", "%d bytes is not between 1 and %d", c.OutputLimit, hostabi.MaxDecisionSize)
	}
	if c.ModuleLimit <= 0 {
		wrong("moduleLimit", "%d bytes is not positive", c.ModuleLimit)
	}
	if c.Modules <= 0 {
		wrong("modules", "%d is not positive", c.Modules)
	}
	if c.Warm <= 0 {
		wrong("warm", "%d is not positive", c.Warm)
	}
	if c.Fuel <= 0 {
		wrong("fuel", "%d ticks is not positive", c.Fuel)
	}
	if c.Default.Policy == "" {
		wrong("default", "no policy is named")
	}
	if _, err := c.Default.settings(); err != nil {
		wrong("default", "%w", err)
	}
	return errors.Join(errs...)
}
