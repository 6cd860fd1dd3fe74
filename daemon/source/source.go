// Package source turns what the cluster says of executor pods into observations.
//
// It promises:
//
//   - every list that is as new as all that was seen before it began is given to the sink whole, an older one never;
//   - after a list, no event that the list already contains;
//   - whatever a watch loses, the next list repairs: there is one at the start, after each watch that broke, and from time to time;
//   - a watch that is silent for too long is taken for dead, whatever the connection says;
//   - a pod that was seen as the owner's stays the executor that it was until it is gone, whatever its labels say later: an edit is told of, once;
//   - any other pod that is not the owner's is never shown as an executor: it is told of by name, counted and left alone;
//   - a pod that does not name an executor is left out; it spoils nothing for others.
//
// One Feed serves all applications of a namespace. What it gives away is small and shares no memory with the pods that it came from.
package source

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

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Cluster is what a Feed needs of a cluster.
type Cluster interface {
	cluster.Lister
	cluster.Watcher
}

// Sink takes what a Feed sees. It is called from one goroutine at a time, and while it blocks nothing else is seen.
type Sink interface {
	// Observed takes one pod of ours of an application as a watch shows it. One that is gone has phase Deleted.
	Observed(app string, pod snapshot.Observation)
	// Foreign takes a pod that says that it is an application's and is not ours, as a watch shows it.
	Foreign(app string, pod application.ForeignPod, gone bool)
	// Listed takes a list. It concerns every application of the namespace, also those of which it has no pod.
	Listed(l Listing)
}

// Listing is a list of all executor pods of a namespace at one version. It does not change.
type Listing struct {
	Version snapshot.Version
	apps    map[string]*listed
	lives   map[uint32]struct{} // the incarnations that pods show
}

type listed struct {
	pods    []snapshot.Observation
	foreign []application.ForeignPod
}

// Apps returns the applications that have pods in the list, others' included, in ascending order.
func (l Listing) Apps() []string { return slices.Sorted(maps.Keys(l.apps)) }

// Of returns those of an application's pods that are ours, ascending by ID; there may be none.
func (l Listing) Of(app string) []snapshot.Observation {
	if in, ok := l.apps[app]; ok {
		return in.pods
	}
	return nil
}

// Foreign returns those of an application's pods that are not ours, ascending by name; there may be none.
func (l Listing) Foreign(app string) []application.ForeignPod {
	if in, ok := l.apps[app]; ok {
		return in.foreign
	}
	return nil
}

// of is what the list has of an application, to be filled.
func (l Listing) of(app string) *listed {
	in := l.apps[app]
	if in == nil {
		in = &listed{}
		l.apps[app] = in
	}
	return in
}

// Config is what a Feed works with. Cluster, Owner, Namespace and Sink must be set.
type Config struct {
	Cluster   Cluster
	Owner     pod.Owner // whose pods are ours
	Namespace string
	Sink      Sink

	Poll       time.Duration // between lists that nothing called for; 0: none
	PollOnly   bool          // no watch: for clusters that do not grant it
	Silence    time.Duration // after which a watch is taken for dead; servers send a bookmark about once a minute
	Backoff    time.Duration // first pause after a call went wrong; it doubles with each further one
	MaxBackoff time.Duration

	Log   *slog.Logger
	Meter metric.Meter
}

// DefaultConfig is a Config with the times that suit most clusters.
func DefaultConfig() Config {
	return Config{Poll: 30 * time.Minute, Silence: 3 * time.Minute, Backoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second}
}

// Validate reports everything that is wrong with a Config.
func (c Config) Validate() error {
	var errs []error
	if c.Cluster == nil || c.Owner == (pod.Owner{}) || c.Sink == nil || c.Namespace == "" {
		errs = append(errs, errors.New("cluster, owner, namespace and sink: one is missing"))
	}
	if c.Poll < 0 {
		errs = append(errs, fmt.Errorf("poll: %v is negative", c.Poll))
	}
	if c.PollOnly && c.Poll == 0 {
		errs = append(errs, errors.New("poll: 0 with pollOnly leaves only the first list: set an interval"))
	}
	if c.Silence <= 0 {
		errs = append(errs, fmt.Errorf("silence: %v is not positive", c.Silence))
	}
	if c.Backoff <= 0 || c.MaxBackoff < c.Backoff {
		errs = append(errs, fmt.Errorf("backoff: %v up to %v is not a range of positive durations", c.Backoff, c.MaxBackoff))
	}
	return errors.Join(errs...)
}

// Feed follows the executor pods of one namespace.
type Feed struct {
	cfg    Config
	query  cluster.Query
	m      *instruments
	wanted chan struct{} // a list is called for
	fresh  chan struct{} // a list was delivered

	mu         sync.Mutex // held while the sink is called, so that lists and events reach it in one order
	list       mark       // the newest list that was delivered
	newest     snapshot.Version
	listing    bool
	meanwhile  []sighting // of foreign pods, while a list is under way
	unreadable unreadable
	roll       roll

	census census
	alive  atomic.Pointer[time.Time] // the last sign of life of the cluster; nil before the first list
}

// mark is a list as the watch needs to know it.
type mark struct {
	number  uint64 // how many lists have been delivered
	version snapshot.Version
	text    string // the version as the cluster writes it
}

// New readies a Feed. Nothing happens before Run.
func New(cfg Config) (*Feed, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the source of pods: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Feed{
		cfg:    cfg,
		query:  cluster.Query{Namespace: cfg.Namespace, Selector: selector()},
		wanted: make(chan struct{}, 1),
		fresh:  make(chan struct{}, 1),
		roll:   roll{}, unreadable: unreadable{},
	}
	var err error
	if f.m, err = newInstruments(cfg.Meter, cfg.Namespace, f.Age, f.census.strangers); err != nil {
		return nil, fmt.Errorf("configuring the source of pods: %w", err)
	}
	return f, nil
}

// Run follows the namespace until ctx is done and returns context.Cause(ctx). Errors of the cluster do not end it: it tries again, and Age tells.
func (f *Feed) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { f.poll(ctx) })
	if !f.cfg.PollOnly {
		loops.Go(func() { f.watch(ctx) })
	}
	loops.Wait()
	return context.Cause(ctx)
}

// Refresh calls for a list soon, for an application that has just become known.
func (f *Feed) Refresh() { signal(f.wanted) }

// Age is how long ago the cluster last gave a sign of life (a list, an event or a bookmark); false if it has not yet been listed.
func (f *Feed) Age() (time.Duration, bool) {
	last := f.alive.Load() // not under mu: a sink that blocks must not block who asks how we are
	if last == nil {
		return 0, false
	}
	return time.Since(*last), true
}

func (f *Feed) sign() { f.alive.Store(new(time.Now())) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

// pause waits, and reports whether ctx is still wanted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// byExecutor orders observations. Two pods of one executor are a foreign one, or another life; their names tell them apart.
func byExecutor(a, b snapshot.Observation) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name))
}

// unreadable remembers pods that were complained of, by UID, so that each is complained of once.
type unreadable map[string]struct{}

const maxUnreadable = 256

func (u unreadable) first(uid string) bool {
	if _, ok := u[uid]; ok || len(u) >= maxUnreadable {
		return false
	}
	u[uid] = struct{}{}
	return true
}
