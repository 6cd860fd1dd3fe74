package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/hostabi"
)

// alone is a server without a network or a cluster, for the bubble that it is made in. The set runs until stop.
type alone struct {
	*Server
	apps  *applicationService
	shelf *shelf
	app   *runner.Member // named app, with profile p
	stop  context.CancelFunc
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var set *runner.Set
	set = runner.NewSet(runner.Carriers{
		Pods: func(runner.Key, ...application.Effect) {}, Sessions: func(runner.Key, application.Effect) {},
		Policies: undecided{}, Left: func(runner.Key) {}, Incarnation: func() (uint32, error) { return 1, nil },
		Joined: func(key runner.Key) { set.Post(key, application.PodsListed{Version: 1}) }, // none acts before it has seen a list
	}, log)
	ctx, stop := context.WithCancel(context.Background())
	go func() { _ = set.Run(ctx) }()
	t.Cleanup(stop)
	a := &alone{shelf: &shelf{bound: make(map[runner.Key]spec.Binding)}, stop: stop}
	var err error
	a.Server, err = New(DefaultConfig(), Parts{
		Applications: set, Policies: a.shelf, Tokens: NewTokens(), Credentials: NewExecutorKeys([32]byte{}), Log: log,
		Meter: noop.NewMeterProvider(), Tracer: tracenoop.NewTracerProvider(),
		Defaults: spec.Defaults{
			Namespace: "default", Namespaces: []string{"default", "other"}, Image: "image",
			Config: application.Config{
				Batch: time.Second, Resync: time.Hour, DecisionDeadline: time.Second, MaxTaskAttempts: 3, MaxQueued: 100,
				RetainTasks: 100, RetainBytes: 1 << 20, SessionTimeout: time.Hour, ReattachGrace: time.Second,
				Failures: application.FailureBudget{Threshold: 100, Window: time.Minute, Initial: time.Second, Max: time.Minute},
			},
			Profile: application.Profile{Slots: 1, BatchSize: 10, IdleTimeout: time.Minute, CreationTimeout: time.Minute},
			Pod:     pod.Spec{Address: "nowhere:1", Program: "executor", Lease: time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.apps = &applicationService{Server: a.Server}
	if err = a.apply(t, "app", nil); err != nil {
		t.Fatal(err)
	}
	if a.app, err = set.Find(runner.Key{Namespace: "default", ID: "app"}); err != nil {
		t.Fatal(err)
	}
	return a
}

// apply applies an application with profile p, as change makes it.
func (a *alone) apply(t *testing.T, id string, change func(*apiv1.ApplicationSpec)) error {
	src := &apiv1.ApplicationSpec{Id: id, Profiles: []*apiv1.ProfileSpec{{Name: "p", Max: 100}}}
	if change != nil {
		change(src)
	}
	_, err := a.apps.ApplyApplication(everything(t), &apiv1.ApplyApplicationRequest{Spec: src})
	return err
}

// pods shows an application executors 1 to n.
func (a *alone) pods(n int) {
	for id := range snapshot.ID(n) {
		name := pod.Name("app", 1, id+1)
		a.app.Post(application.PodObserved{Pod: snapshot.Observation{
			ID: id + 1, Phase: snapshot.Running, Name: name, UID: name, Version: 2,
		}})
	}
}

// shelf is the policies direct, which is the default, and other. Settings that are not JSON are wrong.
type shelf struct {
	mu    sync.Mutex
	bound map[runner.Key]spec.Binding
	tried int // how often Try and Bind were called
	hold  map[string]chan struct{}
}

var errShelf = errors.New("there is no such policy, or its settings are wrong")

func (s *shelf) Try(_ context.Context, b spec.Binding) error {
	s.wait("Try")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	return s.fits(b)
}

func (s *shelf) fits(b spec.Binding) error {
	if (b.Policy != "direct" && b.Policy != "other") || (b.Settings != "" && !json.Valid([]byte(b.Settings))) {
		return errShelf
	}
	return nil
}

func (s *shelf) Bind(_ context.Context, app runner.Key, b spec.Binding, _, _ application.Mode) (policy.Module, string, error) {
	s.wait("Bind")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if err := s.fits(b); err != nil {
		return policy.Module{}, "", err
	}
	s.bound[app] = b
	return policy.Module{Name: b.Policy, Digest: "digest of " + b.Policy}, "former", nil
}

func (s *shelf) Forget(app runner.Key) {
	s.wait("Forget")
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.bound, app)
}

func (s *shelf) wait(method string) {
	s.mu.Lock()
	hold := s.hold[method]
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// holds lets calls of a method wait from now on, until the function that it returns is called.
func (s *shelf) holds(method string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold = map[string]chan struct{}{method: hold}
	return func() { close(hold) }
}

// of is an application's own binding.
func (s *shelf) of(id string) spec.Binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound[runner.Key{Namespace: "default", ID: id}]
}

func (s *shelf) Bound(app runner.Key) policy.Module {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := cmp.Or(s.bound[app].Policy, "direct")
	return policy.Module{Name: name, Digest: "digest of " + name}
}

func (s *shelf) Load(context.Context, string, []byte) (policy.Module, error) {
	return policy.Module{}, errShelf
}

func (s *shelf) SetDefault(context.Context, spec.Binding) (policy.Module, string, error) {
	return policy.Module{}, "", errShelf
}

func (s *shelf) Rollback(context.Context, runner.Key) (policy.Module, application.Mode, string, error) {
	return policy.Module{}, 0, "", errShelf
}

func (s *shelf) Modules() []policy.Module { return nil }

// undecided is a policy that never decides.
type undecided struct{}

func (undecided) Ask(context.Context, runner.Key, hostabi.Hook, runner.Question) runner.Answer {
	return runner.Answer{}
}

func (undecided) AskBuiltin(context.Context, hostabi.Hook, runner.Question) runner.Answer {
	return runner.Answer{}
}

// remotePeer is the other end of a stream: it says what is in says, and takes messages from takes on only.
type remotePeer[In, Out any] struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // a stream has its context
	says chan *In
	took chan *Out
}

func newRemotePeer[In, Out any](ctx context.Context) *remotePeer[In, Out] {
	return &remotePeer[In, Out]{ctx: ctx, says: make(chan *In, 10), took: make(chan *Out)}
}

func (p *remotePeer[In, Out]) Context() context.Context { return p.ctx }

func (p *remotePeer[In, Out]) Recv() (*In, error) {
	select {
	case msg := <-p.says:
		return msg, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func (p *remotePeer[In, Out]) Send(msg *Out) error {
	select {
	case p.took <- msg:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// everything is the context of a caller who may do it.
func everything(t *testing.T) context.Context {
	return context.WithValue(t.Context(), callerKey{}, caller{name: "root", role: admin, namespace: "*"})
}

// open counts the sessions.
func (s *Server) open() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.open)
}

// begin lets executor 1 attach and returns what ends its stream, and what Attach returned.
func (a *alone) begin(t *testing.T) (context.CancelFunc, <-chan error) {
	name := pod.Name("app", 1, 1)
	md := metadata.Pairs("authorization", "Bearer "+a.parts.Credentials.Token("default", "app", 1, name))
	ctx, cancel := context.WithCancel(metadata.NewIncomingContext(t.Context(), md))
	p := newRemotePeer[apiv1.AttachRequest, apiv1.AttachResponse](ctx)
	p.says <- &apiv1.AttachRequest{Register: &apiv1.Register{Namespace: "default", Application: "app", Executor: 1, PodName: name, Slots: 1}}
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- (&executorService{Server: a.Server}).Attach(p)
	}()
	return cancel, ended
}
