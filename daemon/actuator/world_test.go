package actuator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retinue-sched/retinue/daemon/actuator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const namespace = "batch"

// The daemon whose pods are ours, and another.
var us, them = pod.NewOwner([32]byte{1}), pod.NewOwner([32]byte{2})

// fault stands between a caller and a call: it may carry it out, or not, and answer what it likes.
type fault func(ctx context.Context, carryOut func() error) error

// world is a cluster with scripted faults, and what was asked of it.
type world struct {
	mu     sync.Mutex
	server *model.Server
	faults map[string][]fault // by verb, one for each call
	always map[string]fault   // by verb and pod, "create a-i1-exec-1"
	calls  []string
	times  []time.Time
	made   map[string]int // creations that were carried out, by name
	flying int
	most   int
}

func newWorld() *world {
	w := &world{server: model.New(time.Now(), model.Config{Seed: 1}), faults: map[string][]fault{}, always: map[string]fault{}, made: map[string]int{}}
	if _, err := w.server.Create(time.Now(), model.Ref{Resource: "namespaces"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		panic(err)
	}
	return w
}

func (w *world) call(ctx context.Context, verb, name string, carryOut func() error) error {
	w.mu.Lock()
	w.calls, w.times = append(w.calls, verb+" "+name), append(w.times, time.Now())
	w.flying++
	w.most = max(w.most, w.flying)
	f, ok := w.always[verb+" "+name]
	if queue := w.faults[verb]; !ok && len(queue) > 0 {
		f, w.faults[verb] = queue[0], queue[1:]
	}
	w.mu.Unlock()
	locked := func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return carryOut()
	}
	defer func() {
		w.mu.Lock()
		w.flying--
		w.mu.Unlock()
	}()
	if f == nil {
		return locked()
	}
	return f(ctx, locked)
}

func (w *world) Create(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	var made *corev1.Pod
	err := w.call(ctx, "create", p.Name, func() error {
		obj, err := w.server.Create(time.Now(), ref(p.Name), p.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made = obj.(*corev1.Pod)
		w.made[p.Name]++
		return nil
	})
	return made, err
}

func (w *world) Read(ctx context.Context, _, name string) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := w.call(ctx, "read", name, func() error {
		obj, err := w.server.Read(ref(name))
		if err == nil {
			found = obj.(*corev1.Pod)
		}
		return err
	})
	return found, err
}

func (w *world) Delete(ctx context.Context, d cluster.Deletion) error {
	return w.call(ctx, "delete", d.Name, func() error {
		opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{}}
		if d.UID != "" {
			opts.Preconditions.UID = new(types.UID(d.UID))
		}
		if d.Version != "" {
			opts.Preconditions.ResourceVersion = new(d.Version)
		}
		if d.Grace >= 0 {
			opts.GracePeriodSeconds = new(int64(d.Grace / time.Second))
		}
		_, _, err := w.server.Delete(time.Now(), ref(d.Name), opts)
		return err
	})
}

func ref(name string) model.Ref { return model.Ref{Resource: "pods", Namespace: namespace, Name: name} }

// find returns the pod of that name, nil if there is none.
func (w *world) find(name string) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	obj, err := w.server.Read(ref(name))
	if err != nil {
		return nil
	}
	return obj.(*corev1.Pod)
}

// plant puts a pod into the cluster behind the actuator's back.
func (w *world) plant(p *corev1.Pod) *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	obj, err := w.server.Create(time.Now(), ref(p.Name), p, metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	return obj.(*corev1.Pod)
}

// bind puts a pod on a node: its version changes, and it no longer goes at once when it is deleted.
func (w *world) bind(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.server.Bind(time.Now(), ref(name), "node"); err != nil {
		panic(err)
	}
}

func (w *world) script(verb string, faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[verb] = append(w.faults[verb], faults...)
}

// stick makes a fault stay for all calls of a verb and a pod.
func (w *world) stick(call string, f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.always[call] = f
}

func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// peak is the most calls that were ever in flight.
func (w *world) peak() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// The faults.
var (
	hang fault = func(ctx context.Context, _ func() error) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	commitThenHang fault = func(ctx context.Context, carryOut func() error) error {
		if err := carryOut(); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
)

func answering(err error) fault { return func(context.Context, func() error) error { return err } }

func slowly(d time.Duration) fault {
	return func(ctx context.Context, carryOut func() error) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return carryOut()
		}
	}
}

// rig is an actuator at work on a world, and what it answered.
type rig struct {
	*world
	t       *testing.T
	act     *actuator.Actuator
	cancel  context.CancelCauseFunc
	done    chan error
	mu      sync.Mutex
	answers []string
	events  map[string][]application.Event // by application
}

// start runs an actuator for applications a and b in the bubble of the test.
func start(t *testing.T, tune func(*actuator.Config)) *rig {
	t.Helper()
	r := &rig{world: newWorld(), t: t, done: make(chan error, 1), events: map[string][]application.Event{}}
	cfg := actuator.Config{Cluster: r.world, Build: buildPod, Owner: us, Answer: r.answer, Limits: actuator.DefaultLimits()}
	if tune != nil {
		tune(&cfg)
	}
	act, err := actuator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.act = act
	act.Admit("a", namespace)
	act.Admit("b", namespace)
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		r.done <- act.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel(nil)
		for range r.done { // until Run has returned
			continue
		}
	})
	return r
}

func (r *rig) answer(app string, ev application.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[app] = append(r.events[app], ev)
	switch ev := ev.(type) {
	case application.PodCreated:
		r.answers = append(r.answers, fmt.Sprintf("%s created %d", app, ev.Executor))
	case application.PodRefused:
		r.answers = append(r.answers, fmt.Sprintf("%s refused %d class %d", app, ev.Executor, ev.Class))
	case application.PodDeleted:
		r.answers = append(r.answers, fmt.Sprintf("%s deleted %d outcome %d", app, ev.Executor, ev.Outcome))
	}
}

// heard returns the answers so far.
func (r *rig) heard() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.answers)
}

// last is the newest answer to application a.
func (r *rig) last() application.Event {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.events["a"]); n > 0 {
		return r.events["a"][n-1]
	}
	return nil
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func create(id snapshot.ID) application.CreatePod {
	return application.CreatePod{Executor: id, Name: pod.Name("a", 1, id)}
}

func buildPod(app string, c application.CreatePod) (*corev1.Pod, error) {
	return pod.Build(pod.Spec{
		Application: app, Namespace: namespace, Incarnation: 1, Owner: us, Address: "daemon:1", Program: "/x",
		Profiles: []pod.Profile{{Name: "p", Image: "i", Slots: 1}},
	}, pod.Instance{Executor: c.Executor, Profile: c.Profile, Token: "t"})
}

// ourPod is the pod that the actuator would make for application a.
func ourPod(id snapshot.ID) *corev1.Pod {
	p, err := buildPod("a", application.CreatePod{Executor: id})
	if err != nil {
		panic(err)
	}
	return p
}
