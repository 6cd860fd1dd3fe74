// Package policy runs allocation policies: WebAssembly modules, sandboxed and bounded, and the one that is built in.
//
// It promises that
//
//   - every question is answered, within the deadline and the time an instance takes to start: what a module cannot answer, the
//     built-in policy does, in the same call, and the answer says so;
//   - each answer is made by exactly one generation of an application's policy, also while another takes over;
//   - one application's policy holds up no other application;
//   - a module sees its question, its settings and nothing else of the world; the same question gives it the same world;
//   - nothing that a module says is copied before its place and size have been checked, nor believed before its form has;
//   - whatever a module does is stopped within its fuel and its deadline, and costs at most its instance;
//   - a call begins from the same image of the module as the one before and leaves nothing behind.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/modules"
)

// errClosed reports that the host has ended.
var errClosed = errors.New("the policy host has ended")

// Host runs the policies of all applications.
type Host struct {
	cfg      Config
	log      *slog.Logger
	meters   *meters
	engine   *engine
	library  *library
	pools    *pools
	desks    sync.Pool // of *desk
	unmeter  func() error
	patience time.Duration // of the end with a compilation
	closing  sync.Once
	busy     sync.WaitGroup // those who make instances, other than for a question
	closeErr error

	defaults sync.Mutex // held while the default changes

	mu           sync.RWMutex
	applications map[string]*binding
	standard     standard
	failed       error // why the default policy cannot decide at all, or nil
	closed       bool
}

// binding is an application and who decides for it.
type binding struct {
	app     string
	current atomic.Pointer[generation] // nil: the default is not there yet

	mu       sync.Mutex // held while the generation changes
	own      bool       // it has a binding of its own
	ended    bool       // the application is gone
	previous *generation
}

// standard is what decides for applications without a binding of their own.
type standard struct {
	policy   string
	settings string
	pool     *pool // nil until it is compiled
}

// hooks returns the questions that there are.
func hooks() []hostabi.Hook { return []hostabi.Hook{hostabi.HookAllocate, hostabi.HookRelease} }

// exportOf returns the name of the function that answers a hook.
func exportOf(hook hostabi.Hook) string {
	if hook == hostabi.HookRelease {
		return hostabi.ExportRelease
	}
	return hostabi.ExportAllocate
}

// New readies a host. The default policy is compiled by Run, or when something first needs it; until then the built-in one answers.
// A host that is not run must be closed. Without a meter nothing is measured.
func New(cfg Config, log *slog.Logger, meter metric.Meter) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the policy host's configuration: %w", err)
	}
	settings, _ := cfg.Default.settings() // Validate has seen to it
	if meter == nil {
		meter = noop.Meter{}
	}
	m, err := newMeters(meter)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(cfg, m)
	if err != nil {
		return nil, err
	}
	l := newLibrary(e, log, m)
	h := &Host{
		cfg: cfg, log: log, meters: m, engine: e, library: l, pools: newPools(e, l, cfg.Warm),
		patience:     time.Second,
		applications: map[string]*binding{},
		standard:     standard{policy: cfg.Default.Policy, settings: settings},
	}
	h.desks.New = func() any { return newDesk() }
	registration, err := m.describe(meter, h.library.list)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("registering the policy metrics: %w", err), e.close(context.Background()))
	}
	h.unmeter = registration.Unregister
	return h, nil
}

// Run compiles the default policy and then the other shipped ones, and closes the host when ctx is done. It returns
// context.Cause(ctx). A policy that cannot be compiled is logged, and Ready says so if it is the default one. One that only was too slow is tried
// again.
func (h *Host) Run(ctx context.Context) error {
	const first, last = time.Second, time.Minute
	for wait := first; !h.prepare(ctx) && ctx.Err() == nil; wait = min(2*wait, last) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	<-ctx.Done()
	return errors.Join(context.Cause(ctx), h.Close(context.WithoutCancel(ctx)))
}

// prepare compiles what ships, the default first: it is what a plain start waits for. It reports whether no later try could change anything.
func (h *Host) prepare(ctx context.Context) bool {
	settled := h.setDefault(ctx)
	for _, s := range modules.Shipped() {
		err := h.library.loadShipped(ctx, s)
		if err != nil && ctx.Err() == nil {
			h.log.LogAttrs(ctx, slog.LevelError, "shipped policy unavailable", slog.String("policy", s.Name), slog.Any("error", err))
		}
		settled = settled && !wasSlow(err)
	}
	return settled
}

// wasSlow reports whether something did not work because it took too long.
func wasSlow(err error) bool { return errors.Is(err, errTime) || errors.Is(err, errSlow) }

// setDefault makes the configured default the default, unless another was set meanwhile, and reports whether no later try could change anything.
func (h *Host) setDefault(ctx context.Context) bool {
	if h.hasDefault() {
		return true
	}
	_, _, err := h.makeDefault(ctx, h.cfg.Default, true)
	if err == nil || ctx.Err() != nil || !h.fail(err) {
		return true
	}
	h.log.LogAttrs(ctx, slog.LevelError, "default policy unavailable", slog.Any("error", err))
	return !wasSlow(err)
}

// fail says why there is no default, unless there is one by now.
func (h *Host) fail(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.standard.pool != nil {
		return false
	}
	h.failed = err
	return true
}

// enter lets a caller make instances, unless the host has ended. The caller is busy until it is done.
func (h *Host) enter() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.closed {
		h.busy.Add(1)
	}
	return !h.closed
}

// Close ends all instances once the calls in progress have, and frees what they used. Questions that come later are answered by the
// built-in policy. A compilation cannot be broken off: it is waited for for a moment, and then the rest is freed when it ends.
func (h *Host) Close(ctx context.Context) error {
	h.closing.Do(func() { h.closeErr = h.close(ctx) })
	return h.closeErr
}

func (h *Host) close(ctx context.Context) error {
	h.library.close()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	unmeter, ended := h.unmeter(), make(chan error, 1)
	go func() {
		h.busy.Wait()
		h.library.work.Wait()
		h.endAll(ctx)
		ended <- h.engine.close(ctx)
	}()
	select {
	case err := <-ended:
		return errors.Join(unmeter, err)
	case <-time.After(h.patience):
		h.log.LogAttrs(ctx, slog.LevelWarn, "left behind: a module is still being compiled or started")
		return unmeter
	}
}

// endAll ends everything that decides.
func (h *Host) endAll(ctx context.Context) {
	h.mu.Lock()
	bindings := h.applications
	h.applications = map[string]*binding{}
	last := h.standard.pool
	h.standard.pool = nil
	h.mu.Unlock()
	for _, b := range bindings {
		h.end(ctx, b)
	}
	if last != nil {
		h.pools.release(ctx, last)
	}
}

// Ready returns nil once the default policy can decide, and else why it cannot.
func (h *Host) Ready() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	switch {
	case h.failed != nil:
		return h.failed
	case h.standard.pool == nil:
		return fmt.Errorf("the default policy %s is being compiled; the built-in one decides until then", h.standard.policy)
	}
	return nil
}

// Load checks, compiles and tries a module, plain or compressed with gzip, and keeps it under a name, or under its own if the name is
// empty. Nothing changes for any application. The same bytes again are no work. The error wraps ErrRefused if the module is not fit.
func (h *Host) Load(ctx context.Context, name string, wasm []byte) (Module, error) {
	return h.library.load(ctx, name, wasm, false)
}

// Modules lists what is loaded, by name. Modules that only an application needs any more, since their name went to another, are listed,
// too.
func (h *Host) Modules() []Module { return h.library.list() }

// Bound is an application and who decides for it.
type Bound struct {
	Application string
	Module      Module
	Settings    string // a JSON object
	Mode        string // as it was bound
	Own         bool   // it has a binding of its own; if not, the default decides
}

// Bindings lists who decides for the applications that have been asked about or bound, by application.
func (h *Host) Bindings() []Bound {
	h.mu.RLock()
	bindings := slices.Collect(maps.Values(h.applications))
	h.mu.RUnlock()
	var list []Bound
	for _, b := range bindings {
		list = append(list, b.bound())
	}
	slices.SortFunc(list, func(a, b Bound) int { return cmp.Compare(a.Application, b.Application) })
	return list
}

func (b *binding) bound() Bound {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.describe()
}

// describe does that with the lock held.
func (b *binding) describe() Bound {
	bound := Bound{Application: b.app, Module: builtinModule(), Settings: noSettings, Own: b.own}
	if g := b.current.Load(); g != nil {
		bound.Module, bound.Settings, bound.Mode = g.pool.module.as(g.policy), g.pool.settings, g.mode
	}
	return bound
}

// Bound returns what decides for an application. Its digest is "native:" and a name while the default policy is not there yet.
func (h *Host) Bound(app string) Module {
	h.mu.RLock()
	b, known := h.applications[app]
	s := h.standard
	h.mu.RUnlock()
	switch {
	case known:
		return b.bound().Module
	case s.pool != nil:
		return s.pool.module.as(s.policy)
	}
	return builtinModule()
}

// builtinModule describes the policy that is built in.
func builtinModule() Module {
	return Module{Name: builtinName, Digest: builtinDigest, Hooks: hooks(), Shipped: true, Description: "the default policy, built into the daemon"}
}
