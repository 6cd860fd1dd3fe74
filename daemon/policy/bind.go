package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// ErrNoEarlier reports that an application has had no other policy to go back to.
var ErrNoEarlier = errors.New("there is no earlier policy to go back to")

// errEnded reports that the application has been released.
var errEnded = errors.New("the application is gone")

// The results of a swap, as labels.
const (
	swapDone      = "switched"
	swapUnchanged = "unchanged"
	swapRefused   = "refused"
	swapBack      = "rolled_back"
)

// Bind lets a policy decide for an application from the next question on. An instance with the settings is made first; if that does not
// work, nothing has changed. A policy that is being compiled is waited for. replaced is the digest of what decided before; it is empty
// if that very policy with the same settings did, in which case nothing happens.
func (h *Host) Bind(ctx context.Context, app string, to Binding) (bound Module, replaced string, err error) {
	bound, replaced, err = h.bind(ctx, app, to)
	switch {
	case err != nil:
		h.meters.swapped(ctx, swapRefused)
		return Module{}, "", fmt.Errorf("binding application %s to policy %s: %w", app, to.Policy, err)
	case replaced == "":
		h.meters.swapped(ctx, swapUnchanged)
	default:
		h.meters.swapped(ctx, swapDone)
	}
	return bound, replaced, nil
}

func (h *Host) bind(ctx context.Context, app string, to Binding) (Module, string, error) {
	if !h.enter() {
		return Module{}, "", errClosed
	}
	defer h.busy.Done()
	m, name, settings, err := h.resolve(ctx, to)
	if err != nil {
		return Module{}, "", err
	}
	b, err := h.binding(app)
	if err != nil {
		h.library.release(ctx, m)
		return Module{}, "", err
	}
	if b.adopt(m, settings, to.Mode) {
		h.library.release(ctx, m)
		return m.as(name), "", nil
	}
	p, f := h.wake(ctx, m, settings)
	if f != nil {
		return Module{}, "", fmt.Errorf("it %w", f)
	}
	replaced, err := h.exchange(ctx, b, &generation{policy: name, pool: p, mode: to.Mode}, to.Before)
	return m.as(name), replaced, err
}

// resolve returns what a binding names: the module, which the caller must release, the name it goes by, and the settings in their shortest form.
func (h *Host) resolve(ctx context.Context, to Binding) (m *module, name, settings string, err error) {
	if settings, err = to.settings(); err != nil {
		return nil, "", "", err
	}
	m, name, err = h.library.find(ctx, to.Policy)
	return m, name, settings, err
}

// wake returns a pool whose module has started and taken its settings. It takes over the caller's hold on the module; the pool must be released.
func (h *Host) wake(ctx context.Context, m *module, settings string) (*pool, *fault) {
	p := h.pools.of(ctx, m, settings)
	f := p.wake(ctx)
	h.pools.touch(ctx, p)
	if f != nil {
		h.pools.release(ctx, p)
		return nil, f
	}
	return p, nil
}

// Try finds out whether a policy is there and takes the settings. Nothing changes for any application.
func (h *Host) Try(ctx context.Context, to Binding) error {
	wrap := func(err error) error { return fmt.Errorf("trying policy %s: %w", to.Policy, err) }
	if !h.enter() {
		return wrap(errClosed)
	}
	defer h.busy.Done()
	m, _, settings, err := h.resolve(ctx, to)
	if err != nil {
		return wrap(err)
	}
	p, f := h.wake(ctx, m, settings)
	if f != nil {
		return wrap(fmt.Errorf("it %w", f))
	}
	h.pools.release(ctx, p)
	return nil
}

// adopt makes what decides already the application's own choice, if it is what is asked for.
func (b *binding) adopt(m *module, settings, mode string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.current.Load()
	if !g.same(m, settings) {
		return false
	}
	b.own, g.mode = true, mode
	return true
}

// exchange puts a generation that was chosen for the application in charge and returns the digest of the one before, which stays ready for a
// rollback to the mode of until now.
func (h *Host) exchange(ctx context.Context, b *binding, g *generation, mode string) (string, error) {
	before, oldest, err := b.swap(g, mode)
	switch {
	case err != nil:
		h.retire(ctx, g)
		return "", err
	case before == nil:
		return builtinDigest, nil
	}
	h.retire(ctx, oldest)
	return before.pool.module.Digest, nil
}

// swap puts a generation in charge. It returns the one before, which is kept, and the one before that, which must be retired: not with
// the lock held, since that waits for a call.
func (b *binding) swap(g *generation, mode string) (before, oldest *generation, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil, nil, errEnded
	}
	b.own = true
	if before = b.current.Swap(g); before != nil {
		if before.mode == "" { // nobody chose it, so nobody said
			before.mode = mode
		}
		oldest, b.previous = b.previous, before
	}
	return before, oldest, nil
}

// Rollback lets the policy decide again that did before the last Bind. Rolling back twice changes nothing.
func (h *Host) Rollback(ctx context.Context, app string) (bound Bound, replaced string, err error) {
	b, err := h.binding(app)
	if err != nil {
		return Bound{}, "", fmt.Errorf("rolling back application %s: %w", app, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	earlier := b.previous
	if earlier == nil {
		return Bound{}, "", fmt.Errorf("rolling back application %s: %w", app, ErrNoEarlier)
	}
	b.own = true
	b.previous = b.current.Swap(earlier)
	h.meters.swapped(ctx, swapBack)
	replaced = b.previous.pool.module.Digest
	return b.describe(), replaced, nil
}

// SetDefault lets a policy decide for every application that has no binding of its own, now and later. The settings are tried first; if
// they do not work, nothing has changed.
func (h *Host) SetDefault(ctx context.Context, to Binding) (bound Module, replaced string, err error) {
	return h.makeDefault(ctx, to, false)
}

// makeDefault does that, if wanted only while there is no default.
func (h *Host) makeDefault(ctx context.Context, to Binding, onlyFirst bool) (bound Module, replaced string, err error) {
	wrap := func(err error) error { return fmt.Errorf("making %s the default policy: %w", to.Policy, err) }
	if !h.enter() {
		return Module{}, "", wrap(errClosed)
	}
	defer h.busy.Done()
	m, name, settings, err := h.resolve(ctx, to)
	if err != nil {
		return Module{}, "", wrap(err)
	}
	p, f := h.wake(ctx, m, settings)
	if f != nil {
		return Module{}, "", wrap(fmt.Errorf("it %w", f))
	}
	h.defaults.Lock()
	defer h.defaults.Unlock()
	if onlyFirst && h.hasDefault() { // another was set while this one started
		h.pools.release(ctx, p)
		return Module{}, "", nil
	}
	replaced = h.setStandard(ctx, standard{policy: name, settings: settings, pool: p})
	h.log.LogAttrs(ctx, slog.LevelInfo, "default policy set", slog.String("policy", name), slog.String("digest", m.Digest),
		slog.String("replaced", replaced))
	return m.as(name), replaced, nil
}

func (h *Host) hasDefault() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.standard.pool != nil
}

// setStandard takes over the hold on the new standard's pool.
func (h *Host) setStandard(ctx context.Context, s standard) (replaced string) {
	h.mu.Lock()
	before := h.standard
	h.standard, h.failed = s, nil
	var follow []*binding
	for _, b := range h.applications {
		follow = append(follow, b)
	}
	h.mu.Unlock()
	for _, b := range follow {
		h.follow(ctx, b, s)
	}
	if before.pool == nil {
		return builtinDigest
	}
	h.pools.release(ctx, before.pool)
	return before.pool.module.Digest
}

// follow lets the standard decide for an application, unless it has a choice of its own.
func (h *Host) follow(ctx context.Context, b *binding, s standard) {
	h.pools.retain(s.pool)
	g := &generation{policy: s.policy, pool: s.pool}
	h.retire(ctx, b.follow(g))
}

// follow puts a generation in charge that nobody chose, unless there is a choice or it is in charge already. It returns the one that is not needed
// any more.
func (b *binding) follow(g *generation) *generation {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.current.Load()
	if b.own || b.ended || before.same(g.pool.module, g.pool.settings) {
		return g
	}
	b.current.Store(g)
	if before == nil {
		return nil
	}
	oldest := b.previous
	b.previous = before
	return oldest
}

// binding returns the application's binding. A new one follows the standard.
func (h *Host) binding(app string) (*binding, error) {
	h.mu.RLock()
	b, known := h.applications[app]
	h.mu.RUnlock()
	if known {
		return b, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b, known = h.applications[app]
	switch {
	case known:
		return b, nil
	case h.closed:
		return nil, errClosed
	}
	b = &binding{app: app}
	if s := h.standard; s.pool != nil {
		h.pools.retain(s.pool)
		b.current.Store(&generation{policy: s.policy, pool: s.pool})
	}
	h.applications[app] = b
	return b, nil
}

// Release forgets an application that is gone and ends its instances.
func (h *Host) Release(app string) {
	h.mu.Lock()
	b, known := h.applications[app]
	delete(h.applications, app)
	h.mu.Unlock()
	if known {
		h.end(context.Background(), b) // it waits for the calls in progress, which a deadline bounds
	}
}

func (h *Host) end(ctx context.Context, b *binding) {
	b.mu.Lock()
	current, previous := b.current.Swap(nil), b.previous
	b.previous, b.ended = nil, true
	b.mu.Unlock()
	h.retire(ctx, current)
	h.retire(ctx, previous)
}

// retire ends the generation's hold on its pool.
func (h *Host) retire(ctx context.Context, g *generation) {
	if g != nil {
		h.pools.release(ctx, g.pool)
	}
}
