package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/hostabi"
)

// engine compiles modules and makes instances of them, all under the same bounds.
type engine struct {
	cfg     Config
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	worlds  worlds
	offers  []hostFunction
}

// module is a module that has been checked, compiled and tried.
type module struct {
	Module
	answers     [hostabi.HookRelease + 1]bool
	projections [hostabi.HookRelease + 1]hostabi.Projection
	code        wazero.CompiledModule
	voice       *voice
	refs        int // names and generations that need it; the library counts
}

func newEngine(cfg Config) (*engine, error) {
	ctx := context.Background() // nothing here waits
	cache, err := openCache(cfg.CacheDir)
	if err != nil {
		return nil, err
	}
	runtimeConfig := wazero.NewRuntimeConfig()
	if cfg.Interpreter {
		runtimeConfig = wazero.NewRuntimeConfigInterpreter()
	}
	runtimeConfig = runtimeConfig.
		WithCloseOnContextDone(true). // a deadline stops a loop
		WithMemoryLimitPages(uint32(cfg.MemoryLimit / pageSize)).
		WithCoreFeatures(api.CoreFeaturesV2).
		WithCompilationCache(cache)
	e := &engine{cfg: cfg, cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, runtimeConfig), offers: offers()}
	if err := e.worlds.offer(ctx, e.runtime, e.offers); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	return e, nil
}

// close ends all instances and forgets all modules.
func (e *engine) close(ctx context.Context) error {
	return errors.Join(e.runtime.Close(ctx), e.cache.Close(ctx))
}

// openCache opens the cache in a folder, which it makes. What is in it is run, so nobody else may write there.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the cache for compiled policies: %w", err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("others may write to %s, and what it holds is run: chmod go-w it, or name another folder", path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the cache for compiled policies: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the cache for compiled policies: %w", err)
	}
	return cache, nil
}

// compile is the one place where a module's bytes become code. It cannot be broken off.
func (e *engine) compile(ctx context.Context, c checked) (*module, error) {
	code, err := e.runtime.CompileModule(ctx, c.wasm)
	if err != nil {
		return nil, fmt.Errorf("it does not compile: %w", err)
	}
	m := &module{code: code, projections: c.projections, Module: Module{
		Name: c.manifest.Name, Digest: c.digest, Version: c.manifest.Version, Description: c.manifest.Description, Size: len(c.wasm),
	}}
	for _, hook := range hooks() {
		if c.manifest.Has(hook) {
			m.answers[hook] = true
			m.Hooks = append(m.Hooks, hook)
		}
	}
	return m, nil
}

// try runs a module once on views that any policy can answer: without executors, and with one.
func (e *engine) try(ctx context.Context, m *module) *fault {
	i, f := e.instantiate(ctx, m, noSettings)
	if f != nil {
		return f
	}
	defer i.close(ctx)
	for _, view := range trialViews() {
		for _, hook := range hooks() {
			if !m.answers[hook] {
				continue
			}
			if f := e.tryView(ctx, i, hook, view, m.projections[hook]); f != nil {
				return f
			}
		}
	}
	return nil
}

func (e *engine) tryView(ctx context.Context, i *instance, hook hostabi.Hook, view hostabi.View, p hostabi.Projection) *fault {
	// The first call of an instance is slower than the others, and a trial is not a race.
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StartTimeout)
	defer cancel()
	view.Hook = hook
	i.world.begin(view.Decision.ElapsedMS, view.Decision.WallMS, view.Decision.Seed)
	_, f := i.ask(ctx, hook, view.Encode(nil, p))
	return f
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
