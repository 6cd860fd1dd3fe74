package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/modules"
)

// ErrUnknown reports a policy that is neither loaded nor shipped.
var ErrUnknown = errors.New("no such policy")

// ErrRefused reports a module that is not fit to be a policy here.
var ErrRefused = errors.New("the module is refused")

// errSlow reports a module whose compilation was given up.
var errSlow = errors.New("it takes too long to compile")

// Module says what a loaded policy is.
type Module struct {
	Name        string
	Digest      string // "sha256:" and the digest of the unpacked bytes in hexadecimal
	Version     string
	Description string
	Hooks       []hostabi.Hook
	Size        int // bytes, unpacked
	Shipped     bool
}

// library keeps modules under their digests and names, each compiled once. A module that no name and no generation needs any more
// is forgotten.
type library struct {
	engine *engine
	log    *slog.Logger
	meters *meters
	turn   chan struct{}  // compiling keeps a core busy: one at a time
	work   sync.WaitGroup // compilations, also those that nobody waits for

	mu      sync.Mutex
	modules map[string]*module // by digest
	names   map[string]string  // name → digest
	pending map[string]*pending
	closed  bool
}

func newLibrary(e *engine, log *slog.Logger, m *meters) *library {
	return &library{
		engine: e, log: log, meters: m, turn: make(chan struct{}, 1),
		modules: map[string]*module{}, names: map[string]string{}, pending: map[string]*pending{},
	}
}

// pending is a module that is being compiled.
type pending struct {
	name string
	done chan struct{} // closed when err stands and, without one, the module is in the library
	err  error
}

// load puts a module into the library under a name, or under its own if the name is empty, and returns what it is. The same bytes
// are compiled once, however many ask for it.
func (l *library) load(ctx context.Context, name string, wasm []byte, shipped bool) (Module, error) {
	c, err := check(wasm, l.engine.offers, l.engine.cfg)
	if err != nil {
		return Module{}, refused(name, err)
	}
	name = cmp.Or(name, c.manifest.Name)
	if err := checkName(name); err != nil {
		return Module{}, refused(name, err)
	}
	if err := l.roomFor(name); err != nil {
		return Module{}, err
	}
	if s, there := modules.Named(name); there && s.Digest != c.digest {
		return Module{}, fmt.Errorf("loading policy %s: the name is that of a shipped policy: load it under another", name)
	}
	if err := l.compiled(ctx, name, c, shipped); err != nil {
		return Module{}, err
	}
	return l.name(ctx, name, c.digest)
}

// namesEach is how many names there may be for each module that may be.
const namesEach = 4

// roomFor refuses a name that is one too many.
func (l *library) roomFor(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.names[name]; !there && len(l.names) >= namesEach*l.engine.cfg.Modules {
		return fmt.Errorf("loading policy %s: %d names are taken already, the most that may be: load it under one of them", name, len(l.names))
	}
	return nil
}

// refused says which module is refused, and why.
func refused(name string, err error) error {
	if name == "" {
		return fmt.Errorf("loading a policy: %w: %w", ErrRefused, err)
	}
	return fmt.Errorf("loading policy %s: %w: %w", name, ErrRefused, err)
}

// checkName wants a name that fits into a command line, a file and a metric.
func checkName(name string) error {
	const most = 63
	fine := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
	}
	if name == "" || len(name) > most || strings.ContainsFunc(name, func(r rune) bool { return !fine(r) }) {
		return fmt.Errorf("its name %q is not made of at most %d small letters, digits, dots, dashes and underscores", name, most)
	}
	return nil
}

// compiled waits until a module is in the library, and starts to compile it if nobody has.
func (l *library) compiled(ctx context.Context, name string, c checked, shipped bool) error {
	if ctx.Err() != nil { // nobody would wait for what is begun here
		return fmt.Errorf("loading policy %s: %w", name, context.Cause(ctx))
	}
	l.mu.Lock()
	p := l.pending[c.digest]
	_, there := l.modules[c.digest]
	switch {
	case l.closed:
		l.mu.Unlock()
		return errClosed
	case there:
		l.mu.Unlock()
		return nil
	case p == nil && len(l.modules)+len(l.pending) >= l.engine.cfg.Modules:
		l.mu.Unlock()
		return fmt.Errorf("loading policy %s: %d policies are loaded already, the most that may be", name, l.engine.cfg.Modules)
	case p == nil:
		p = &pending{name: name, done: make(chan struct{})}
		l.pending[c.digest] = p
		l.work.Go(func() { l.compile(context.WithoutCancel(ctx), p, c, shipped) })
	}
	l.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for policy %s to compile: %w", name, context.Cause(ctx))
	}
}

// compile compiles and tries a module and settles what others wait for. It runs to its end even if it takes too long, but then
// nobody gets what comes of it.
func (l *library) compile(ctx context.Context, p *pending, c checked, shipped bool) {
	l.turn <- struct{}{}
	giveTurn := sync.OnceFunc(func() { <-l.turn })
	defer giveTurn()
	if l.isClosed() {
		l.settle(ctx, p, c.digest, nil, errClosed)
		return
	}
	began := time.Now()
	limit := l.engine.cfg.CompileTimeout
	late := time.AfterFunc(limit, func() {
		l.settle(ctx, p, c.digest, nil, refused(p.name, fmt.Errorf("%w: more than %v", errSlow, limit)))
		giveTurn() // others need not wait for what nobody gets
	})
	defer late.Stop()
	m, err := l.engine.compile(ctx, c)
	took := time.Since(began)
	l.meters.compiled(ctx, took, err)
	if err == nil {
		m.Shipped, m.voice = shipped, newVoice(p.name, l.log, l.meters)
		if f := l.engine.try(ctx, m, noSettings); f != nil {
			err = fmt.Errorf("in its self-test it %w", f)
		}
	}
	if m != nil && m.uncached != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "compiled policy not cached: it is compiled again at the next start", slog.String("policy", p.name),
			slog.String("cache", l.engine.cfg.CacheDir), slog.Any("error", m.uncached))
	}
	if err != nil {
		l.settle(ctx, p, c.digest, nil, refused(p.name, err))
	} else if l.settle(ctx, p, c.digest, m, nil) {
		l.log.LogAttrs(ctx, slog.LevelInfo, "policy compiled", slog.String("policy", p.name), slog.String("digest", c.digest),
			slog.Duration("took", took))
		return
	}
	if m != nil {
		_ = m.code.Close(ctx) // it never fails: there is nothing to flush
	}
}

func (l *library) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// settle says how a compilation ended, and whether that is news.
func (l *library) settle(ctx context.Context, p *pending, digest string, m *module, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-p.done:
		return false
	default:
	}
	delete(l.pending, digest)
	if m != nil {
		l.modules[digest] = m
		l.rename(ctx, p.name, m)
	}
	p.err = err
	close(p.done)
	return true
}

// name puts a name on a compiled module, taking it from the one that had it.
func (l *library) name(ctx context.Context, name, digest string) (Module, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.modules[digest]
	if m == nil {
		return Module{}, fmt.Errorf("naming policy %s: %w: another took its name meanwhile: load it again", name, ErrUnknown)
	}
	l.rename(ctx, name, m)
	return m.as(name), nil
}

// rename does that with the library's lock held.
func (l *library) rename(ctx context.Context, name string, m *module) {
	old, taken := l.names[name]
	if taken && old == m.Digest {
		return
	}
	m.refs++
	l.names[name] = m.Digest
	if taken {
		l.drop(ctx, l.modules[old])
	}
}

// as returns what the module is under one of its names.
func (m *module) as(name string) Module {
	info := m.Module
	info.Name = name
	return info
}

// find returns a loaded or shipped policy by name or digest and the name it goes by. The caller must release it.
func (l *library) find(ctx context.Context, policy string) (*module, string, error) {
	if m, name := l.known(policy); m != nil {
		return m, name, nil
	}
	for _, s := range modules.Shipped() {
		if policy != s.Name && policy != s.Digest {
			continue
		}
		if err := l.loadShipped(ctx, s); err != nil {
			return nil, "", err
		}
		if m, name := l.known(s.Digest); m != nil {
			return m, name, nil
		}
	}
	return nil, "", fmt.Errorf("finding policy %q: %w: there are %s", policy, ErrUnknown, strings.Join(l.choices(), ", "))
}

func (l *library) loadShipped(ctx context.Context, s modules.Module) error {
	wasm, err := s.Wasm()
	if err != nil {
		return err
	}
	_, err = l.load(ctx, s.Name, wasm, true)
	return err
}

// known returns a compiled module, for which the caller must care, or nil.
func (l *library) known(policy string) (*module, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	digest, named := l.names[policy]
	if !named {
		digest = policy
	}
	m := l.modules[digest]
	if m == nil {
		return nil, ""
	}
	m.refs++
	if !named {
		policy = m.Name
	}
	return m, policy
}

// release says that one less needs the module.
func (l *library) release(ctx context.Context, m *module) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(ctx, m)
}

// drop forgets a module that nobody needs. The library's lock is held.
func (l *library) drop(ctx context.Context, m *module) {
	if m.refs--; m.refs > 0 || m.Shipped {
		return
	}
	delete(l.modules, m.Digest)
	_ = m.code.Close(ctx) // it never fails: there is nothing to flush
}

// choices are the names by which policies can be found, sorted.
func (l *library) choices() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Collect(maps.Keys(l.names))
	for _, s := range modules.Shipped() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// list returns what is loaded, by name, and then what no name stands for any more but something still needs.
func (l *library) list() []Module {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Module
	seen := map[string]bool{}
	for name, digest := range l.names {
		list = append(list, l.modules[digest].as(name))
		seen[digest] = true
	}
	for digest, m := range l.modules {
		if !seen[digest] {
			list = append(list, m.Module)
		}
	}
	slices.SortFunc(list, func(a, b Module) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest)) })
	return list
}

// close lets nothing be loaded any more. What is being compiled goes on.
func (l *library) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
