// Package actuator creates and deletes executor pods: it is the only writer of pods, for all applications.
//
// It promises:
//
//   - every CreatePod is answered by PodCreated or PodRefused, and every DeletePod by PodDeleted, while the application is admitted and Run runs;
//     an effect that was asked for again before it was answered is answered once;
//   - a creation whose outcome is unknown is asked for again under the same name until it is known: it is never forgotten, never made twice;
//   - a pod that is not ours is neither adopted nor deleted, and a deletion carries the preconditions of its effect;
//   - applications take turns, one that waits or fails holds up nobody else, and deletions never wait for creations;
//   - with nothing to do it does nothing: no call, no timer.
package actuator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/pod"
)

// Builder makes the pod of an executor. It is called from many goroutines. Its error means that the pod is not valid.
type Builder func(app string, c application.CreatePod) (*corev1.Pod, error)

// Config is what an Actuator works with. Cluster, Build, Owner and Answer must be set.
type Config struct {
	Cluster cluster.Writer
	Build   Builder
	Owner   pod.Owner // whose pods are ours
	// Answer takes what became of an effect. It is called from one goroutine at a time and must not block.
	Answer func(app string, ev application.Event)

	Limits Limits
	Log    *slog.Logger
	Meter  metric.Meter
}

// Limits bounds what an Actuator does to the cluster.
type Limits struct {
	Calls       int           // calls of a kind (creations, deletions) in flight to begin with
	MaxCalls    int           // most of a kind in flight: the number grows slowly while all goes well, and is halved by congestion
	Timeout     time.Duration // of a call
	Backoff     time.Duration // first pause after a call went wrong; it doubles with each further one
	MaxBackoff  time.Duration // the longest pause
	DeleteTries int           // tries after which a deletion has failed
	Drain       time.Duration // how long calls in flight may take to end when Run is told to
}

// DefaultLimits is gentle to any cluster: beyond 16 creations in flight only their latency grows.
func DefaultLimits() Limits {
	return Limits{
		Calls: 8, MaxCalls: 16, Timeout: 15 * time.Second, Backoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second, DeleteTries: 8,
		Drain: 5 * time.Second,
	}
}

// Validate reports everything that is wrong with Limits.
func (l Limits) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(l.Calls > 0, "calls: %d is not positive", l.Calls)
	check(l.MaxCalls >= l.Calls, "maxCalls: %d is less than calls (%d)", l.MaxCalls, l.Calls)
	check(l.Timeout > 0, "timeout: %v is not positive", l.Timeout)
	check(l.Backoff > 0, "backoff: %v is not positive", l.Backoff)
	check(l.MaxBackoff >= l.Backoff, "maxBackoff: %v is less than backoff (%v)", l.MaxBackoff, l.Backoff)
	check(l.DeleteTries > 0, "deleteTries: %d is not positive", l.DeleteTries)
	check(l.Drain >= 0, "drain: %v is negative", l.Drain)
	return errors.Join(errs...)
}

// Actuator carries out CreatePod and DeletePod effects.
type Actuator struct {
	cfg  Config
	wake chan struct{}
	m    *instruments

	mu   sync.Mutex
	desk *desk
}

// New readies an Actuator. Nothing happens before Run.
func New(cfg Config) (*Actuator, error) {
	if cfg.Cluster == nil || cfg.Build == nil || cfg.Owner == (pod.Owner{}) || cfg.Answer == nil {
		return nil, errors.New("configuring the actuator: a cluster, a builder, an owner and somebody to answer to are needed")
	}
	if err := cfg.Limits.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the actuator: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Actuator{
		cfg:  cfg,
		wake: make(chan struct{}, 1),
		desk: newDesk(cfg.Limits, func(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }),
	}
	var err error
	if a.m, err = newInstruments(cfg.Meter, a.load); err != nil {
		return nil, fmt.Errorf("configuring the actuator: %w", err)
	}
	return a, nil
}

// Admit makes an application known, and where its pods are. Effects of others are dropped.
func (a *Actuator) Admit(app, namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.desk.admit(app, namespace)
}

// Dismiss forgets an application that is gone: what waits is dropped, and what is in flight is not answered.
func (a *Actuator) Dismiss(app string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.desk.dismiss(app)
}

// Enqueue takes the CreatePod and DeletePod among the effects and leaves the others alone. It never blocks.
func (a *Actuator) Enqueue(app string, effects ...application.Effect) {
	a.mu.Lock()
	for _, eff := range effects {
		switch eff := eff.(type) {
		case application.CreatePod:
			a.desk.create(app, eff)
		case application.DeletePod:
			a.desk.delete(app, eff)
		}
	}
	a.mu.Unlock()
	a.signal()
}

// Run carries out effects until ctx is done, lets calls in flight end, answers for them, and returns context.Cause(ctx).
func (a *Actuator) Run(ctx context.Context) error {
	calls, cut := context.WithCancelCause(context.WithoutCancel(ctx)) // a shutdown must not turn creations in flight into unknown ones
	defer cut(nil)
	var workers sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if pause, due := a.round(calls, &workers); due {
			timer.Reset(pause)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer.C:
		}
	}
	late := time.AfterFunc(a.cfg.Limits.Drain, func() { cut(context.Cause(ctx)) })
	workers.Wait()
	late.Stop()
	a.deliver()
	return context.Cause(ctx)
}

// round answers what is to be answered, starts what may be started, and says when to look again if nothing happens.
func (a *Actuator) round(calls context.Context, workers *sync.WaitGroup) (pause time.Duration, due bool) {
	a.deliver()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, o := range a.desk.start(now) {
		workers.Go(func() { a.work(calls, o, now) })
	}
	return a.desk.pause(now)
}

func (a *Actuator) deliver() {
	a.mu.Lock()
	answers := a.desk.take()
	a.mu.Unlock()
	for _, ans := range answers {
		a.cfg.Answer(ans.app, ans.event)
	}
}

func (a *Actuator) work(ctx context.Context, o *order, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Limits.Timeout)
	defer cancel()
	var r result
	if o.verb == creation {
		r = a.make(ctx, o)
	} else {
		r = a.remove(ctx, o)
	}
	a.m.called(ctx, o.verb, r.class, time.Since(began))
	a.mu.Lock()
	news := a.desk.finish(time.Now(), o, r, began)
	a.mu.Unlock()
	a.report(ctx, o, r, news)
	a.signal()
}

func (a *Actuator) signal() {
	select {
	case a.wake <- struct{}{}:
	default: // a look is due already
	}
}

// report logs the beginning and the end of trouble, not each call in it.
func (a *Actuator) report(ctx context.Context, o *order, r result, n news) {
	attrs := []slog.Attr{slog.String("application", o.tenant.app), slog.String("verb", o.verb.String())}
	switch n {
	case troubleBegan:
		attrs = append(attrs, slog.String("class", r.class.String()), slog.String("text", r.text))
		a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the cluster does not take calls: trying again with growing pauses", attrs...)
	case troubleEnded:
		a.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the cluster takes calls again", attrs...)
	case foreignFound:
		a.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a pod that is not ours has the name of an executor", append(attrs, slog.String("text", r.text))...)
	case nothingNew:
	}
}

func (a *Actuator) load(v verb) (flying, queued int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.desk.lanes[v]
	return int64(l.flying), int64(l.queued)
}
