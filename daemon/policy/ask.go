package policy

import (
	"context"
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
// of the policy the built-in one answers the same question. Questions about one application are answered one after the other.
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
	g, i, err := h.take(app)
	switch {
	case err != nil: // the host ends; who asks does, too
		return h.builtin(ctx, d), byBuiltin
	case g == nil:
		return h.absent(ctx, d)
	case !g.module.answers[d.hook]:
		g.slot <- i
		return h.builtin(ctx, d), byBuiltin
	}
	decision, i, f := h.call(ctx, g, i, d)
	g.slot <- i
	if f != nil {
		return h.fallBack(ctx, app, g, d, f), byFallback
	}
	return Answer{Decision: decision, By: g.module.Digest, Policy: g.policy}, byModule
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

// take returns the application's generation, or nil if there is none, and its instance, or nil if that must be made. The slot must be
// filled again.
func (h *Host) take(app string) (*generation, *instance, error) {
	for {
		b, err := h.binding(app)
		if err != nil {
			return nil, nil, err
		}
		g := b.current.Load()
		if g == nil {
			return nil, nil, nil
		}
		if i, alive := <-g.slot; alive {
			return g, i, nil
		}
		// It was retired between the two lines: two others have taken over since.
	}
}

// call asks an instance, which it makes if there is none, and returns it for the next question, or nil if it is spent.
func (h *Host) call(ctx context.Context, g *generation, i *instance, d *desk) (hostabi.Decision, *instance, *fault) {
	if i == nil {
		var f *fault
		if i, f = h.instance(ctx, g.module, g.settings); f != nil {
			return hostabi.Decision{}, nil, f
		}
	}
	block := d.encode(g.module.projections[d.hook])
	row := &d.view.Decision
	i.world.begin(row.ElapsedMS, row.WallMS, row.Seed)
	bounded, cancel := context.WithTimeout(ctx, h.cfg.Deadline)
	defer cancel()
	decision, f := i.ask(bounded, d.hook, block)
	g.module.voice.pass(ctx, i.world)
	if f != nil {
		h.discard(ctx, i)
		return hostabi.Decision{}, nil, f
	}
	return decision, i, nil
}

// fallBack lets the built-in policy answer after a fault.
func (h *Host) fallBack(ctx context.Context, app string, g *generation, d *desk, f *fault) Answer {
	h.meters.faulted(ctx, f.cause)
	h.log.LogAttrs(ctx, slog.LevelWarn, "policy fault", slog.String("application", app), slog.String("policy", g.policy),
		slog.String("digest", g.module.Digest), slog.String("hook", d.hook.String()), slog.String("cause", string(f.cause)),
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
