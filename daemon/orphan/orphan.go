// Package orphan keeps the executor pods of ours whose application nobody knows: the daemon that made them has forgotten it, or never got to hear
// what became of them.
//
// It promises:
//
//   - each is told of once, and counted while it is there;
//   - one that stays for longer than the timeout is deleted, by its uid, and asked for again ever less often until it is gone; none is sooner;
//   - one whose application has become known is let go of, and never deleted from here.
//
// That they are ours is for who shows them to know.
package orphan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Pod is a pod of ours whose application was not known when it was shown.
type Pod struct {
	Namespace   string
	Application string
	Seen        snapshot.Observation
}

// Config is what a Keeper works with. Known, Delete and Clock must be set. They are called from many goroutines and must not block.
type Config struct {
	Namespaces []string      // those that pods are shown of
	Timeout    time.Duration // how long an orphan is kept; 0: for ever
	// Known reports whether there is such an application.
	Known func(namespace, app string) bool
	// Delete asks for a pod to go. Executor is a number that only stands for the pod here.
	Delete func(namespace string, pod application.DeletePod)
	Clock  func() snapshot.Instant

	Log   *slog.Logger
	Meter metric.Meter
}

// retry is how often a deletion is asked for again: a finalizer may hold the pod, or its node may be gone.
var retry = lifecycle.Retry{Interval: time.Minute, Max: 30 * time.Minute}

// maxNamed is how many names a log record holds.
const maxNamed = 10

// Keeper knows the orphans that there are.
type Keeper struct {
	cfg   Config
	woken chan struct{}

	mu      sync.Mutex
	last    snapshot.ID
	pods    map[snapshot.ID]*Pod
	ids     map[place]snapshot.ID
	cleaner *lifecycle.Cleaner
}

// place is where a pod is.
type place struct{ namespace, name string }

// New readies a Keeper. Nothing is deleted before Run.
func New(cfg Config) (*Keeper, error) {
	if cfg.Known == nil || cfg.Delete == nil || cfg.Clock == nil || cfg.Timeout < 0 {
		return nil, errors.New("configuring the keeper of orphans: who knows applications, who deletes, a clock and a timeout of zero or more are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Meter == nil {
		cfg.Meter = noop.Meter{}
	}
	k := &Keeper{
		cfg: cfg, woken: make(chan struct{}, 1), pods: map[snapshot.ID]*Pod{}, ids: map[place]snapshot.ID{}, cleaner: lifecycle.NewCleaner(retry),
	}
	_, err := cfg.Meter.Int64ObservableGauge("retinue.pods.orphaned",
		metric.WithDescription("Executor pods of this daemon whose application it does not know, by namespace."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			count := k.count()
			for _, namespace := range cfg.Namespaces {
				o.Observe(count[namespace], metric.WithAttributes(attribute.String("namespace", namespace)))
			}
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("configuring the keeper of orphans: making a gauge: %w", err)
	}
	return k, nil
}

// Observed takes in one pod as a watch shows it. One that is gone has phase Deleted.
func (k *Keeper) Observed(ctx context.Context, p Pod) {
	k.mu.Lock()
	var news []string
	if p.Seen.Phase == snapshot.Deleted {
		k.drop(p.at())
	} else if k.keep(p) {
		news = []string{p.Seen.Name}
	}
	k.mu.Unlock()
	k.tell(ctx, p.Namespace, news)
}

// Listed takes in all orphans of a namespace: those that were known and are not among them are gone.
func (k *Keeper) Listed(ctx context.Context, namespace string, pods []Pod) {
	k.mu.Lock()
	there := make(map[place]bool, len(pods))
	var news []string
	for _, p := range pods {
		there[p.at()] = true
		if k.keep(p) {
			news = append(news, p.Seen.Name)
		}
	}
	k.dropAll(func(p *Pod) bool { return p.Namespace == namespace && !there[p.at()] })
	k.mu.Unlock()
	k.tell(ctx, namespace, news)
}

// Claimed lets go of the pods of an application that has become known.
func (k *Keeper) Claimed(namespace, app string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropAll(func(p *Pod) bool { return p.Namespace == namespace && p.Application == app })
}

// Answered takes what became of a deletion.
func (k *Keeper) Answered(ctx context.Context, ev application.PodDeleted) {
	k.mu.Lock()
	var p Pod
	known, there := k.pods[ev.Executor]
	if there {
		p = *known
	}
	k.mu.Unlock()
	if there && ev.Outcome == application.DeleteFailed {
		k.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "an executor pod of an unknown application could not be deleted: it is tried again",
			slog.String("namespace", p.Namespace), slog.String("pod", p.Seen.Name), slog.String("text", ev.Text))
	}
}

// Run deletes the pods that have been orphans for too long until ctx is done, and returns context.Cause(ctx).
func (k *Keeper) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			k.clean(ctx)
		case <-k.woken:
		}
		k.mu.Lock()
		next, some := k.cleaner.Next()
		k.mu.Unlock()
		if timer.Stop(); some {
			timer.Reset(max(0, next.Sub(k.cfg.Clock())))
		}
	}
}

// clean asks for the deletions that are due.
func (k *Keeper) clean(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, id := range k.cleaner.Due(k.cfg.Clock()) {
		p := k.pods[id]
		switch {
		case k.cfg.Known(p.Namespace, p.Application): // it has just come
			k.drop(p.at())
			continue
		case p.Seen.Deleting: // somebody was faster
			continue
		}
		names = append(names, p.Seen.Name)
		k.cfg.Delete(p.Namespace, application.DeletePod{
			Executor: id, Name: p.Seen.Name, UID: p.Seen.UID, Grace: -1, Why: application.DeleteOrphaned, Text: "nobody knows its application",
		})
	}
	if len(names) > 0 {
		k.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "executor pods of unknown applications are deleted: nobody claimed them in time",
			slog.Int("count", len(names)), slog.Any("names", names[:min(len(names), maxNamed)]), slog.Duration("timeout", k.cfg.Timeout))
	}
}

// keep takes a pod in, and reports whether it is new.
func (k *Keeper) keep(p Pod) bool {
	if id, there := k.ids[p.at()]; there {
		if k.pods[id].Seen.UID == p.Seen.UID {
			*k.pods[id] = p
			return false
		}
		k.drop(p.at()) // another one under the same name has all its time before it
	}
	k.last++
	k.pods[k.last], k.ids[p.at()] = &p, k.last
	if k.cfg.Timeout > 0 {
		k.cleaner.Add(k.cfg.Clock().Add(k.cfg.Timeout), k.last)
		k.wake()
	}
	return true
}

func (k *Keeper) drop(at place) {
	if id, there := k.ids[at]; there {
		delete(k.ids, at)
		delete(k.pods, id)
		k.cleaner.Gone(id)
	}
}

func (k *Keeper) dropAll(which func(*Pod) bool) {
	for _, p := range k.pods {
		if which(p) {
			k.drop(p.at())
		}
	}
}

func (k *Keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default: // it is known already
	}
}

func (k *Keeper) tell(ctx context.Context, namespace string, names []string) {
	if len(names) == 0 {
		return
	}
	slices.SortFunc(names, cmp.Compare)
	fate := "they are kept until somebody deletes them"
	if k.cfg.Timeout > 0 {
		fate = "they are deleted after " + k.cfg.Timeout.String()
	}
	k.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "executor pods belong to applications that are not known here",
		slog.String("namespace", namespace), slog.Int("count", len(names)), slog.Any("names", names[:min(len(names), maxNamed)]),
		slog.String("fate", fate))
}

// count is how many orphans each namespace has.
func (k *Keeper) count() map[string]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := map[string]int64{}
	for _, p := range k.pods {
		n[p.Namespace]++
	}
	return n
}

func (p *Pod) at() place { return place{p.Namespace, p.Seen.Name} }
