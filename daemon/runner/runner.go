// Package runner carries applications: it feeds each one's state machine with events and hands its effects to those who carry them out.
//
// It promises:
//
//   - one goroutine steps an application; nobody else touches its state;
//   - handing an event over never waits for the application, except for peers that ask to be held back;
//   - others read a published value that never changes;
//   - one application's slow policy, watcher or peer delays no other application.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// publishEvery is the shortest time between two published values: readers are people and metrics, and each value costs the store a few copied pages.
const publishEvery = 50 * time.Millisecond

// Key names an application among all.
type Key struct {
	Namespace string
	ID        string
}

// String returns namespace/id.
func (k Key) String() string { return k.Namespace + "/" + k.ID }

// Question is what a policy is asked: it fills the view, as far as keep asks for it.
type Question interface {
	View(v *hostabi.View, keep hostabi.Projection)
}

// Answer is a policy's decision and who made it.
type Answer struct {
	Decision hostabi.Decision
	Policy   string
	By       string // digest of the module, or "native:" and a name
	Fault    string // why the bound policy did not answer itself; empty if it did
}

// Policies answers questions. Ask takes as long as the policy's deadline at most.
type Policies interface {
	Ask(ctx context.Context, app Key, hook hostabi.Hook, q Question) Answer
	AskBuiltin(ctx context.Context, hook hostabi.Hook, q Question) Answer
}

// Carriers carry effects out. None of them waits.
type Carriers struct {
	Pods     func(app Key, effects ...application.Effect) // CreatePod, DeletePod
	Sessions func(app Key, effect application.Effect)     // all that goes to executors
	Policies Policies
	Joined   func(app Key) // an application came, and has not been stepped yet
	Left     func(app Key) // an application was forgotten
	// Incarnation returns a number that it never returned before, also in former lives of the daemon.
	Incarnation func() (uint32, error)
}

// Runner drives one application.
type Runner struct {
	key       Key
	log       *slog.Logger
	carriers  Carriers
	clock     func() snapshot.Instant
	app       *application.Application
	in        *inbox
	asks      chan application.AskPolicy
	clients   *clients
	published atomic.Pointer[application.Status]
	changed   *broadcast
	refresh   chan chan *application.Status
	ended     chan struct{} // closed by the first Ended effect
	stopped   chan struct{} // closed when the application is no longer driven
}

func newRunner(cfg application.Config, carriers Carriers, clock func() snapshot.Instant, log *slog.Logger) *Runner {
	key := Key{Namespace: cfg.Namespace, ID: cfg.ID}
	r := &Runner{
		key: key, carriers: carriers, clock: clock,
		log:     log.With(slog.String("application", key.String())),
		app:     application.New(cfg),
		in:      newInbox(),
		asks:    make(chan application.AskPolicy, 4),
		clients: newClients(),
		changed: newBroadcast(),
		refresh: make(chan chan *application.Status),
		ended:   make(chan struct{}),
		stopped: make(chan struct{}),
	}
	r.publish()
	return r
}

// Key returns the application's name.
func (r *Runner) Key() Key { return r.key }

// Current returns the newest published status. It never changes; keep it as long as you like.
func (r *Runner) Current() *application.Status { return r.published.Load() }

// Fresh returns the status of this moment: it holds whatever a reply or a watch has shown, and all that was posted, before the call.
func (r *Runner) Fresh(ctx context.Context) (*application.Status, error) {
	answer := make(chan *application.Status, 1)
	select {
	case r.refresh <- answer:
		return <-answer, nil
	case <-r.stopped:
		return nil, r.clients.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Changed returns a channel that is closed when a newer status than the current one is published.
func (r *Runner) Changed() <-chan struct{} { return r.changed.wait() }

// Ended is closed once a stopped application has nothing left to do.
func (r *Runner) Ended() <-chan struct{} { return r.ended }

// Post hands an event over. It never waits.
func (r *Runner) Post(ev application.Event) { r.in.put(ev) }

// PostWhenRoom hands an event over once the application is not behind by too much. It returns the context's cause if that takes too long.
func (r *Runner) PostWhenRoom(ctx context.Context, ev application.Event) error {
	return r.in.putWhenRoom(ctx, ev)
}

// run feeds events to the application until ctx is done and returns context.Cause(ctx). It starts no goroutine.
func (r *Runner) run(ctx context.Context) error {
	timers := newTimers()
	defer timers.stop()
	var spare []application.Event
	take := func() {
		events := r.in.take(spare)
		for _, ev := range events {
			r.step(ctx, timers, ev)
		}
		clear(events)
		spare = events
	}
	publish := time.NewTimer(0)
	defer publish.Stop()
	waiting := true // for the publish timer
	for {
		select {
		case <-ctx.Done():
			r.abandon(context.Cause(ctx))
			return context.Cause(ctx)
		case <-r.in.more:
			take()
		case timer := <-timers.fired:
			r.step(ctx, timers, application.TimerFired{Timer: timer})
		case <-publish.C:
			waiting = false
			r.publish()
			continue
		case answer := <-r.refresh:
			take()
			r.publish()
			answer <- r.Current()
			continue
		}
		if !waiting {
			waiting = true
			publish.Reset(publishEvery)
		}
	}
}

func (r *Runner) step(ctx context.Context, timers *timers, ev application.Event) {
	now := r.clock()
	for _, effect := range r.app.Step(now, ev) {
		r.carry(ctx, timers, now, effect)
	}
}

func (r *Runner) carry(ctx context.Context, timers *timers, now snapshot.Instant, effect application.Effect) {
	switch e := effect.(type) {
	case application.SetTimer:
		timers.set(e.Timer, now, e.At)
	case application.CreatePod, application.DeletePod:
		r.carriers.Pods(r.key, effect)
	case application.AskPolicy:
		r.ask(ctx, e)
	case application.Reply:
		r.clients.reply(e)
	case application.TasksChanged:
		r.clients.tasks(e)
	case application.Notice:
		r.log.LogAttrs(ctx, slog.LevelInfo, "notice", slog.String("kind", string(e.Kind)),
			slog.Uint64("executor", uint64(e.Executor)), slog.String("text", e.Text))
	case application.Ended:
		r.end()
	default:
		r.carriers.Sessions(r.key, effect)
	}
}

// ask hands a question to the policy loop. The core has one question in flight and one more after a deadline, so there is always room;
// if the loop is stuck for longer the core's next deadline asks again.
func (r *Runner) ask(ctx context.Context, e application.AskPolicy) {
	select {
	case r.asks <- e:
	default:
		r.log.LogAttrs(ctx, slog.LevelWarn, "policy question dropped", slog.Uint64("number", e.Number))
	}
}

// abandon tells all who wait that this application is not driven any more.
func (r *Runner) abandon(cause error) {
	why := ErrStopped
	if errors.Is(cause, ErrClosed) {
		why = ErrClosed
	}
	r.clients.closeAll(why)
	close(r.stopped)
}

func (r *Runner) end() {
	select {
	case <-r.ended:
	default:
		close(r.ended)
	}
}

// decide answers questions until ctx is done. It is a goroutine of its own, so that a policy never holds up the application.
func (r *Runner) decide(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case ask := <-r.asks:
			r.Post(r.answer(ctx, ask))
		}
	}
}

func (r *Runner) answer(ctx context.Context, ask application.AskPolicy) application.Decided {
	var answer Answer
	if ask.Builtin {
		answer = r.carriers.Policies.AskBuiltin(ctx, ask.Input.Hook, ask.Input)
		answer.Fault = "the policy did not answer in time"
	} else {
		answer = r.carriers.Policies.Ask(ctx, r.key, ask.Input.Hook, ask.Input)
	}
	return application.Decided{
		Number: ask.Number, Decision: answer.Decision,
		Policy: answer.Policy, By: answer.By, Fault: answer.Fault,
	}
}

func (r *Runner) publish() {
	status := r.app.Status(r.clock())
	r.published.Store(&status)
	r.changed.announce()
}

// Call hands over an event that is answered by a Reply, and waits for it. The event is made with the request number given.
func (r *Runner) Call(ctx context.Context, event func(request uint64) application.Event) (application.Reply, error) {
	return r.call(ctx, event, nil)
}

// call is Call with something to be done at the moment of the reply, before any effect that follows it and even if nobody waits any more.
func (r *Runner) call(ctx context.Context, event func(request uint64) application.Event, then func(application.Reply)) (application.Reply, error) {
	request, answer := r.clients.expect(then)
	if then == nil {
		defer r.clients.forget(request)
	}
	if err := r.PostWhenRoom(ctx, event(request)); err != nil {
		return application.Reply{}, err
	}
	select {
	case <-ctx.Done():
		return application.Reply{}, fmt.Errorf("waiting for application %s: %w", r.key, context.Cause(ctx))
	case reply, ok := <-answer:
		if !ok {
			return application.Reply{}, r.clients.why()
		}
		return reply, nil
	}
}
