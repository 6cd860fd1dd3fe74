package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
)

// The policy that is built in.
const (
	builtinName   = "direct"
	builtinDigest = "native:" + builtinName
)

// Question is what a policy is asked: it fills the view, all but its hook, as far as keep asks for it.
type Question interface {
	View(v *hostabi.View, keep hostabi.Projection)
}

// Answer is a decision and how it came about.
type Answer struct {
	Decision hostabi.Decision
	By       string // digest of the module that decided, or "native:" and a name
	Policy   string // its name
	Fault    string // what the bound policy did instead of answering; empty if all is well
	Fuel     int64  // ticks that a module took
	Took     time.Duration
}

// desk is what answering one question needs: the question, a view to fill, bytes to put it in, and the built-in policy.
type desk struct {
	hook     hostabi.Hook
	question Question
	view     hostabi.View
	block    []byte
	builtin  *sdk.NativePolicy
}

func newDesk() *desk {
	builtin, err := sdk.Native(&direct.Policy{}, nil)
	if err != nil {
		panic(err) // it takes no settings here, so it has none to refuse
	}
	return &desk{builtin: builtin}
}

// desk returns a free desk with a question on it. It must be given back.
func (h *Host) desk(hook hostabi.Hook, q Question) *desk {
	d := h.desks.Get().(*desk)
	d.hook, d.question = hook, q
	return d
}

func (h *Host) giveBack(d *desk) {
	d.question = nil
	h.desks.Put(d)
}

// encode returns the question as bytes, valid until the next call. Only what is kept is filled in, too.
func (d *desk) encode(keep hostabi.Projection) []byte {
	d.question.View(&d.view, keep)
	d.view.Hook = d.hook
	d.block = d.view.Encode(d.block[:0], keep)
	return d.block
}

// ask asks the built-in policy. If even that cannot decide, nothing is decided.
func (d *desk) ask() (hostabi.Decision, error) {
	encoded, err := d.builtin.Call(d.hook, d.encode(hostabi.Projection{}))
	if err != nil {
		return hostabi.Decision{}, err
	}
	return hostabi.DecodeDecision(encoded)
}

// Ask asks the application's policy, or the built-in one where the policy has no answer to that hook or is not there yet. After a fault
// of the policy the built-in one answers the same question.
func (h *Host) Ask(ctx context.Context, app string, hook hostabi.Hook, q Question) Answer {
	began := time.Now()
	d := h.desk(hook, q)
	defer h.giveBack(d)
	answer, by := h.answer(ctx, app, d)
	answer.Took = time.Since(began)
	h.meters.decided(ctx, hook, by, answer.Took)
	return answer
}

// Builtin asks the built-in policy.
func (h *Host) Builtin(ctx context.Context, hook hostabi.Hook, q Question) Answer {
	began := time.Now()
	d := h.desk(hook, q)
	defer h.giveBack(d)
	answer := h.builtin(ctx, d)
	answer.Took = time.Since(began)
	h.meters.decided(ctx, hook, byBuiltin, answer.Took)
	return answer
}

func (h *Host) answer(ctx context.Context, app string, d *desk) (Answer, result) {
	for {
		b, err := h.binding(app)
		if err != nil { // the host ends; who asks does, too
			return h.builtin(ctx, d), byBuiltin
		}
		g := b.current.Load()
		switch {
		case g == nil:
			return h.absent(ctx, d)
		case !g.pool.module.answers[d.hook]:
			return h.builtin(ctx, d), byBuiltin
		}
		decision, ticks, f := g.pool.ask(ctx, d.hook, &d.view.Decision, d.encode(g.pool.module.projections[d.hook]), keyDeadline)
		h.pools.touch(ctx, g.pool)
		switch {
		case f == nil:
			h.meters.burnt(ctx, d.hook, ticks)
			return Answer{Decision: decision, By: g.pool.module.Digest, Policy: g.policy, Fuel: ticks}, byModule
		case !errors.Is(f, errRetired): // else others have taken over since
			return h.fallBack(ctx, app, g, d, f), byFallback
		}
	}
}

// absent answers while the default policy is not there. That is a fault only once it is known that it will not come.
func (h *Host) absent(ctx context.Context, d *desk) (Answer, result) {
	h.mu.RLock()
	failed := h.failed
	h.mu.RUnlock()
	answer := h.builtin(ctx, d)
	if failed == nil {
		return answer, byBuiltin
	}
	h.meters.faulted(ctx, causeMissing)
	answer.Fault = failed.Error()
	return answer, byFallback
}

// fallBack lets the built-in policy answer after a fault. That the daemon stopped waiting is none.
func (h *Host) fallBack(ctx context.Context, app string, g *generation, d *desk, f *fault) Answer {
	h.meters.faulted(ctx, f.cause)
	if f.cause == causeCancelled {
		return h.builtin(ctx, d)
	}
	h.log.LogAttrs(ctx, slog.LevelWarn, "policy fault", slog.String("application", app), slog.String("policy", g.policy),
		slog.String("digest", g.pool.module.Digest), slog.String("hook", d.hook.String()), slog.String("cause", string(f.cause)),
		slog.String("fault", f.Error()), slog.String("trace", f.trace))
	answer := h.builtin(ctx, d)
	answer.Fault = fmt.Sprintf("policy %s %v", g.policy, f)
	return answer
}

func (h *Host) builtin(ctx context.Context, d *desk) Answer {
	decision, err := d.ask()
	answer := Answer{Decision: decision, By: builtinDigest, Policy: builtinName}
	if err != nil {
		answer.Fault = fmt.Sprintf("the built-in policy could not decide: %v", err)
		h.log.LogAttrs(ctx, slog.LevelError, "built-in policy failed", slog.String("hook", d.hook.String()), slog.Any("error", err))
	}
	return answer
}
