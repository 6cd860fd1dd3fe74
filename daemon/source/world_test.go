package source_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/source"
)

const namespace = "batch"

// The daemon whose pods are ours, and another.
var us, them = pod.NewOwner([32]byte{1}), pod.NewOwner([32]byte{2})

// world is a cluster whose lists and watches can be spoiled.
type world struct {
	mu      sync.Mutex
	server  *model.Server
	changed chan struct{} // closed at each change
	lists   int
	watches []string // the versions from which watches were opened
	listErr []error  // answers of the next lists
	openErr []error  // answers of the next watches
	during  func()   // happens between the answer of the next list and its arrival
	lag     uint64   // lists are as old as this version, if it is not 0
	beat    time.Duration
	streams []*stream
}

func newWorld() *world {
	w := &world{server: model.New(time.Now(), model.Config{Seed: 1}), changed: make(chan struct{}), beat: time.Minute}
	w.do(func(s *model.Server) error {
		_, err := s.Create(time.Now(), model.Ref{Resource: "namespaces"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		return err
	})
	return w
}

// do changes the cluster and wakes the watches.
func (w *world) do(change func(*model.Server) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := change(w.server); err != nil {
		panic(err)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func ref(name string) model.Ref { return model.Ref{Resource: "pods", Namespace: namespace, Name: name} }

func (w *world) create(p *corev1.Pod) {
	w.do(func(s *model.Server) error {
		_, err := s.Create(time.Now(), ref(p.Name), p, metav1.CreateOptions{})
		return err
	})
}

// run makes a pod run.
func (w *world) run(name string) {
	w.do(func(s *model.Server) error {
		obj, err := s.Read(ref(name))
		if err != nil {
			return err
		}
		p := obj.(*corev1.Pod).DeepCopy()
		p.Status.Phase = corev1.PodRunning
		status := ref(name)
		status.Subresource = "status"
		_, err = s.Update(time.Now(), status, p, metav1.UpdateOptions{})
		return err
	})
}

func (w *world) delete(name string) {
	w.do(func(s *model.Server) error {
		_, _, err := s.Delete(time.Now(), ref(name), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		return err
	})
}

func (w *world) spoil(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

func (w *world) asked() (lists int, watches []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists, slices.Clone(w.watches)
}

func next(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

func (w *world) List(_ context.Context, q cluster.Query, each func(*corev1.Pod)) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	if err := next(&w.listErr); err != nil {
		return "", err
	}
	opts := metav1.ListOptions{LabelSelector: q.Selector}
	if w.lag > 0 {
		opts.ResourceVersion, opts.ResourceVersionMatch = strconv.FormatUint(w.lag, 10), metav1.ResourceVersionMatchExact
	}
	page, err := w.server.List(model.Ref{Resource: "pods", Namespace: q.Namespace}, opts)
	if err != nil {
		return "", err
	}
	if during := w.during; during != nil {
		w.during = nil
		w.mu.Unlock()
		during()
		w.mu.Lock()
	}
	for _, obj := range page.Items {
		each(obj.(*corev1.Pod))
	}
	return page.ResourceVersion, nil
}

func (w *world) Watch(_ context.Context, q cluster.Query, from string) (cluster.Stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = append(w.watches, from)
	if err := next(&w.openErr); err != nil {
		return nil, err
	}
	cursor, err := w.server.Watch(model.Ref{Resource: "pods", Namespace: q.Namespace},
		metav1.ListOptions{LabelSelector: q.Selector, ResourceVersion: from, AllowWatchBookmarks: true})
	if err != nil {
		return nil, err
	}
	s := &stream{world: w, cursor: cursor, broken: make(chan error, 1)}
	w.streams = append(w.streams, s)
	return s, nil
}

// stream is a watch of the model.
type stream struct {
	world  *world
	cursor *model.Cursor
	broken chan error
	mute   bool // shows nothing any more, like a half-open connection
}

func (s *stream) Close() {}

func (s *stream) Next(ctx context.Context) (cluster.Event, error) {
	for {
		ev, changed, ok, err := s.poll()
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-ctx.Done():
			return cluster.Event{}, context.Cause(ctx)
		case err := <-s.broken:
			return cluster.Event{}, err
		case <-changed:
		case <-time.After(s.world.beat):
			if ev, ok := s.bookmark(); ok {
				return ev, nil
			}
		}
	}
}

func (s *stream) poll() (cluster.Event, <-chan struct{}, bool, error) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.mute {
		return cluster.Event{}, s.world.changed, false, nil
	}
	events := s.world.server.Next(s.cursor, 1)
	if len(events) == 0 {
		return cluster.Event{}, s.world.changed, false, nil
	}
	if events[0].Type == watch.Error {
		return cluster.Event{}, nil, false, apierrors.FromObject(events[0].Object)
	}
	p := events[0].Object.(*corev1.Pod)
	kind := cluster.Changed
	if events[0].Type == watch.Deleted {
		kind = cluster.Deleted
	}
	return cluster.Event{Kind: kind, Version: p.ResourceVersion, Pod: p}, nil, true, nil
}

func (s *stream) bookmark() (cluster.Event, bool) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	mark, ok := s.world.server.Bookmark(s.cursor)
	if !ok || s.mute {
		return cluster.Event{}, false
	}
	return cluster.Event{Kind: cluster.Bookmark, Version: mark.Object.(metav1.Object).GetResourceVersion()}, true
}

// cut ends the newest stream, if there is one that is not cut already.
func (w *world) cut(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.streams); n > 0 {
		select {
		case w.streams[n-1].broken <- err:
		default:
		}
	}
}

// rig is a feed at work, and what it showed.
type rig struct {
	*world
	feed   *source.Feed
	cancel context.CancelCauseFunc
	done   chan error

	mu     sync.Mutex
	shown  []string
	phases map[string]snapshot.Phase // what a reader of the feed knows
	uids   map[string]string         // under which it was seen last
}

func start(t *testing.T, w *world, tune func(*source.Config)) *rig {
	t.Helper()
	r := &rig{world: w, done: make(chan error, 1), phases: map[string]snapshot.Phase{}, uids: map[string]string{}}
	cfg := source.DefaultConfig()
	cfg.Cluster, cfg.Owner, cfg.Namespace, cfg.Sink = w, us, namespace, r
	if tune != nil {
		tune(&cfg)
	}
	feed, err := source.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.feed = feed
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.done <- feed.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel(nil)
		for range r.done { // until Run has returned
			continue
		}
	})
	return r
}

func (r *rig) Observed(app string, o snapshot.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, fmt.Sprintf("%s %d %v", app, o.ID, o.Phase))
	r.phases[o.Name], r.uids[o.Name] = o.Phase, o.UID
	if o.Phase == snapshot.Deleted {
		delete(r.phases, o.Name)
	}
}

func (r *rig) Foreign(app string, p application.ForeignPod, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verb := "there"
	if gone {
		verb = "gone"
	}
	r.shown = append(r.shown, fmt.Sprintf("%s foreign %s %s", app, p.Name, verb))
}

func (r *rig) Listed(l source.Listing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.phases)
	line := "list:"
	for _, app := range l.Apps() {
		for _, o := range l.Of(app) {
			line += fmt.Sprintf(" %s %d %v,", app, o.ID, o.Phase)
			r.phases[o.Name], r.uids[o.Name] = o.Phase, o.UID
		}
		for _, p := range l.Foreign(app) {
			line += fmt.Sprintf(" %s foreign %s,", app, p.Name)
		}
	}
	r.shown = append(r.shown, line)
}

// heard returns what was shown since it was last called.
func (r *rig) heard() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.shown
	r.shown = nil
	return out
}

// knows reports whether the pod that now has a name was seen.
func (r *rig) knows(name string) (known bool) {
	r.mu.Lock()
	seen := r.uids[name]
	r.mu.Unlock()
	r.do(func(s *model.Server) error {
		obj, err := s.Read(ref(name))
		if err != nil {
			return err
		}
		known = string(obj.(*corev1.Pod).UID) == seen
		return nil
	})
	return known
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func executor(app string, id snapshot.ID) *corev1.Pod {
	p, err := pod.Build(pod.Spec{
		Application: app, Namespace: namespace, Incarnation: 1, Owner: us, Address: "daemon:1", Program: "/x",
		Profiles: []pod.Profile{{Name: "p", Image: "i", Slots: 1}},
	}, pod.Instance{Executor: id})
	if err != nil {
		panic(err)
	}
	return p
}

var errCut = fmt.Errorf("reading from the connection: %w", io.ErrUnexpectedEOF)
