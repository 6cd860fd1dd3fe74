package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/meter"
	"github.com/retinue-sched/retinue/hostabi"
)

// engine compiles modules and makes instances of them, all under the same bounds.
type engine struct {
	cfg     Config
	runtime wazero.Runtime
	cache   cache
	spare   wazero.Runtime                 // the one that plain has made, or nil
	plain   func() (wazero.Runtime, error) // one without the cache, for what the cache does not take; made when there is need of it
	meters  *meters
	worlds  worlds
	offers  []hostFunction
	copies  bool // memory is put back by copying also where it could be done by page
}

// module is a module that has been checked, compiled and tried.
type module struct {
	Module
	answers     [hostabi.HookRelease + 1]bool
	projections [hostabi.HookRelease + 1]hostabi.Projection
	code        wazero.CompiledModule
	runtime     wazero.Runtime
	uncached    error    // why the cache does not keep the code, or nil
	fuel        string   // the exported global with what is left of it
	globals     []string // the exported globals that change, but for those of the meter
	voice       *voice
	refs        int // names and generations that need it; the library counts
}

func newEngine(cfg Config, m *meters) (*engine, error) {
	ctx := context.Background() // nothing here waits
	cache, err := openCache(cfg.CacheDir)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig()
	if cfg.Interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithMemoryLimitPages(uint32(cfg.MemoryLimit / pageSize)).WithCoreFeatures(api.CoreFeaturesV2)
	e := &engine{cfg: cfg, meters: m, cache: cache, offers: offers()}
	e.plain = sync.OnceValues(func() (_ wazero.Runtime, err error) {
		e.spare, err = e.newRuntime(ctx, config)
		return e.spare, err
	})
	if e.runtime, err = e.newRuntime(ctx, config.WithCompilationCache(cache.CompilationCache)); err != nil {
		return nil, errors.Join(err, e.cache.Close(ctx))
	}
	return e, nil
}

func (e *engine) newRuntime(ctx context.Context, config wazero.RuntimeConfig) (wazero.Runtime, error) {
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if err := e.worlds.offer(ctx, r, e.offers); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// close ends all instances and forgets all modules.
func (e *engine) close(ctx context.Context) error {
	var err error
	if e.spare != nil {
		err = e.spare.Close(ctx)
	}
	return errors.Join(err, e.runtime.Close(ctx), e.cache.Close(ctx))
}

// code compiles a metered module. If the cache does not take the code, or gives back what is none, it is compiled without it.
func (e *engine) code(ctx context.Context, metered []byte) (*module, error) {
	code, err := e.runtime.CompileModule(ctx, metered)
	if err == nil {
		return &module{code: code, runtime: e.runtime, uncached: e.cache.record()}, nil
	}
	if e.cache.dir == "" {
		return nil, err
	}
	plain, plainErr := e.plain()
	if plainErr != nil {
		return nil, plainErr
	}
	if code, plainErr = plain.CompileModule(ctx, metered); plainErr != nil {
		return nil, plainErr // it is the module
	}
	return &module{code: code, runtime: plain, uncached: err}, nil
}

// compile is the one place where a module's bytes become code. It cannot be broken off.
func (e *engine) compile(ctx context.Context, c checked) (*module, error) {
	metered, err := meter.Rewrite(c.parsed, meterConfig(e.cfg))
	if err != nil {
		return nil, fmt.Errorf("it cannot be metered: %w", err)
	}
	m, err := e.code(ctx, metered.Wasm)
	if err != nil {
		return nil, fmt.Errorf("it does not compile: %w", err)
	}
	m.fuel, m.projections, m.Module = metered.Fuel, c.projections, Module{
		Name: c.manifest.Name, Digest: c.digest, Version: c.manifest.Version, Description: c.manifest.Description, Size: c.parsed.Size,
	}
	for _, g := range metered.Globals {
		m.globals = append(m.globals, g.Name)
	}
	for _, hook := range hooks() {
		if c.manifest.Has(hook) {
			m.answers[hook] = true
			m.Hooks = append(m.Hooks, hook)
		}
	}
	return m, nil
}

// meterConfig are the bounds that are written into a module.
func meterConfig(cfg Config) meter.Config {
	c := meter.DefaultConfig()
	c.MemoryPages = uint32(cfg.MemoryLimit / pageSize)
	return c
}

// try runs a module once on views that any policy can answer: without executors, and with one. A trial is not a race: it has the time of a start.
func (e *engine) try(ctx context.Context, m *module, settings string) *fault {
	p := newPool(e, m, settings)
	defer p.end(ctx)
	for _, view := range trialViews() {
		for _, view.Hook = range hooks() {
			if !m.answers[view.Hook] {
				continue
			}
			if _, _, f := p.ask(ctx, view.Hook, &view.Decision, view.Encode(nil, m.projections[view.Hook]), keyStart); f != nil {
				return f
			}
		}
	}
	return nil
}

// trialViews are the views of a self-test.
func trialViews() []hostabi.View {
	empty := hostabi.View{Decision: hostabi.DecisionRow{
		ID: 1, ElapsedMS: 1, WallMS: 1, Seed: 1, Application: "self-test", Trigger: hostabi.TriggerStart, APIBudget: hostabi.None,
	}}
	one := empty
	one.Profiles = []hostabi.ProfileRow{{
		ID: 1, Name: "default", Target: 2, Ceiling: 2, Max: 4, Running: 1, Registered: 1, Idle: 1, Slots: 1, OldestQueuedMS: -1, BatchSize: 1,
		LifetimeLeft: hostabi.None, Mode: hostabi.ModeFollow, CreationTimeoutMS: 1000, IdleTimeoutMS: 1000,
	}}
	one.Executors = []hostabi.ExecutorRow{{ID: 1, Profile: 1, Phase: hostabi.PhaseRunning, Flags: hostabi.FlagRegistered, Slots: 1, IdleSinceMS: 1}}
	return []hostabi.View{empty, one}
}
