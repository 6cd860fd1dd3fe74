package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/driver"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
)

// world is a server with real applications, a cluster that does at once whatever it is asked for, and the policy direct run natively.
type world struct {
	t      *testing.T
	set    *runner.Set
	keys   *driver.ExecutorKeys
	server *driver.Server
	conn   *grpc.ClientConn // of an administrator on this machine
	remote *grpc.ClientConn // of whoever has a token
	tokens *driver.Tokens
	apps   apiv1.ApplicationServiceClient
	tasks  apiv1.TaskServiceClient
	stop   context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	version uint64

	incarnation uint32
}

func newWorld(t *testing.T, change func(*driver.Config)) *world {
	t.Helper()
	w := &world{t: t, keys: driver.NewExecutorKeys([32]byte{7}), tokens: driver.NewTokens(), ended: make(chan error, 2)}
	native, err := sdk.Native(&direct.Policy{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	w.set = runner.NewSet(runner.Carriers{
		Pods:     w.pods,
		Sessions: func(app runner.Key, effect application.Effect) { w.server.Carry(app, effect) },
		Policies: &natively{policy: native}, Joined: w.listed, Left: func(runner.Key) {},
		Incarnation: func() (uint32, error) { w.incarnation++; return w.incarnation, nil },
	}, log)
	cfg := driver.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	w.server, err = driver.New(cfg, driver.Parts{
		Applications: w.set, Policies: onlyDirect{}, Defaults: defaults(), Tokens: w.tokens, Credentials: w.keys,
		Log: log, Meter: noop.NewMeterProvider(), Tracer: tracenoop.NewTracerProvider(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	return w
}

func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	setCtx, stopSet := context.WithCancel(context.Background())
	setEnded := make(chan struct{})
	go func() { _ = w.set.Run(setCtx); close(setEnded) }()
	local, remote := bufconn.Listen(1<<20), bufconn.Listen(1<<20)
	go func() {
		w.ended <- w.server.Run(ctx, []driver.Listener{{Listener: local, Trusted: true}, {Listener: remote}}, 5*time.Second)
	}()
	w.conn, w.remote = dial(w.t, local), dial(w.t, remote)
	w.apps, w.tasks = apiv1.NewApplicationServiceClient(w.conn), apiv1.NewTaskServiceClient(w.conn)
	w.t.Cleanup(func() {
		stop()
		stopSet()
		<-setEnded
	})
}

func dial(t *testing.T, to *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:world", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return to.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// as is a context with a new token.
func (w *world) as(role, namespace string) context.Context {
	w.t.Helper()
	token, line, err := driver.NewToken(role, namespace, "somebody")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.tokens.Replace([]byte(line)); err != nil {
		w.t.Fatal(err)
	}
	return metadata.AppendToOutgoingContext(w.t.Context(), "authorization", "Bearer "+token)
}

func defaults() spec.Defaults {
	return spec.Defaults{
		Namespace: "default", Namespaces: []string{"default", "other"},
		Config: application.Config{
			Batch: time.Millisecond, Resync: time.Second, DecisionDeadline: time.Second, MaxTaskAttempts: 3, MaxQueued: 10_000,
			RetainTasks: 1000, RetainBytes: 1 << 20, SessionTimeout: time.Minute, ReattachGrace: 50 * time.Millisecond,
			Failures: application.FailureBudget{Threshold: 100, Window: time.Minute, Initial: time.Second, Max: time.Minute},
		},
		Profile: application.Profile{Slots: 1, BatchSize: 10, IdleTimeout: time.Minute, CreationTimeout: time.Minute},
		Pod:     pod.Spec{Address: "nowhere:1", Program: "executor", Lease: time.Minute},
		Image:   "image",
	}
}

// listed shows a new application a list without pods, since none acts before it has seen one.
func (w *world) listed(app runner.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	w.set.Post(app, application.PodsListed{Version: snapshot.Version(w.version)})
}

// pods answers for the cluster: what is created exists and runs, what is deleted is gone.
func (w *world) pods(app runner.Key, effects ...application.Effect) {
	w.mu.Lock()
	w.version++
	v := snapshot.Version(w.version)
	w.mu.Unlock()
	for _, effect := range effects {
		switch e := effect.(type) {
		case application.CreatePod:
			uid := fmt.Sprintf("uid-%d", e.Executor)
			w.set.Post(app, application.PodCreated{Executor: e.Executor, UID: uid, Version: v})
			w.set.Post(app, application.PodObserved{Pod: snapshot.Observation{
				ID: e.Executor, Profile: e.Profile, Phase: snapshot.Running, Name: e.Name, UID: uid, Version: v,
			}})
		case application.DeletePod:
			w.set.Post(app, application.PodDeleted{Executor: e.Executor, Outcome: application.DeleteAccepted})
			w.set.Post(app, application.PodObserved{Pod: snapshot.Observation{
				ID: e.Executor, Phase: snapshot.Deleted, Name: e.Name, UID: e.UID, Version: v,
			}})
		}
	}
}

// natively answers questions with a policy that is not sandboxed.
type natively struct {
	mu     sync.Mutex
	policy *sdk.NativePolicy
}

func (n *natively) Ask(ctx context.Context, _ runner.Key, hook hostabi.Hook, q runner.Question) runner.Answer {
	return n.AskBuiltin(ctx, hook, q)
}

func (n *natively) AskBuiltin(_ context.Context, hook hostabi.Hook, q runner.Question) runner.Answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	var view hostabi.View
	q.View(&view, hostabi.Projection{})
	bytes, err := n.policy.Call(hook, view.Encode(nil, hostabi.Projection{}))
	if err != nil {
		return runner.Answer{Fault: err.Error(), Policy: "direct", By: "native:direct"}
	}
	decision, err := hostabi.DecodeDecision(bytes)
	if err != nil {
		return runner.Answer{Fault: err.Error(), Policy: "direct", By: "native:direct"}
	}
	return runner.Answer{Decision: decision, Policy: "direct", By: "native:direct"}
}

// onlyDirect knows one policy.
type onlyDirect struct{}

var errOnlyDirect = errors.New("there is only direct here")

func (onlyDirect) Load(context.Context, string, []byte) (policy.Module, error) {
	return policy.Module{}, errOnlyDirect
}

func (onlyDirect) Try(context.Context, spec.Binding) error { return errOnlyDirect }

func (onlyDirect) Bind(context.Context, runner.Key, spec.Binding, application.Mode, application.Mode) (policy.Module, string, error) {
	return policy.Module{}, "", errOnlyDirect
}

func (onlyDirect) SetDefault(context.Context, spec.Binding) (policy.Module, string, error) {
	return policy.Module{}, "", errOnlyDirect
}

func (onlyDirect) Rollback(context.Context, runner.Key) (policy.Module, application.Mode, string, error) {
	return policy.Module{}, 0, "", errOnlyDirect
}

func (onlyDirect) Bound(runner.Key) policy.Module {
	return policy.Module{Name: "direct", Digest: "native:direct"}
}
func (onlyDirect) Forget(runner.Key)        {}
func (onlyDirect) Modules() []policy.Module { return nil }

// apply creates an application with some executors wanted.
func (w *world) apply(target uint32) {
	w.t.Helper()
	_, err := w.apps.ApplyApplication(w.t.Context(), &apiv1.ApplyApplicationRequest{Spec: &apiv1.ApplicationSpec{
		Id: "app", Profiles: []*apiv1.ProfileSpec{{Name: "p", Target: target, Max: 10}},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// attach opens an executor's stream and sends its registration.
func (w *world) attach(id uint64, change func(*apiv1.Register)) apiv1.ExecutorService_AttachClient {
	w.t.Helper()
	name := pod.Name("app", 1, snapshot.ID(id))
	register := &apiv1.Register{Application: "app", Namespace: "default", Executor: id, PodName: name, PodUid: fmt.Sprintf("uid-%d", id), Slots: 1}
	token := w.keys.Token("default", "app", id, name)
	if change != nil {
		change(register)
	}
	ctx := metadata.AppendToOutgoingContext(w.t.Context(), "authorization", "Bearer "+token)
	stream, err := apiv1.NewExecutorServiceClient(w.conn).Attach(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := stream.Send(&apiv1.AttachRequest{Register: register}); err != nil {
		w.t.Fatal(err)
	}
	return stream
}

// admitted attaches and waits for the admission. An executor that the application does not know yet is tried again, as executors do.
func (w *world) admitted(id uint64) apiv1.ExecutorService_AttachClient {
	w.t.Helper()
	w.until(func(s *apiv1.ApplicationStatus) bool { return s.GetProfiles()[0].GetRunning() >= uint32(id) })
	stream := w.attach(id, nil)
	msg, err := stream.Recv()
	if err != nil || msg.GetAdmitted() == nil {
		w.t.Fatalf("got %v, %v, want an admission", msg, err)
	}
	return stream
}

// until follows an application until its status is as wanted.
func (w *world) until(wanted func(*apiv1.ApplicationStatus) bool) *apiv1.ApplicationStatus {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	stream, err := w.apps.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Application: "app"})
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			w.t.Fatalf("waiting for the application: %v", err)
		}
		for _, a := range msg.GetApplications() {
			if wanted(a.GetStatus()) {
				return a.GetStatus()
			}
		}
	}
}

// submit submits tasks of one job.
func (w *world) submit(n int) {
	w.t.Helper()
	req := &apiv1.SubmitTasksRequest{Application: "app"}
	for i := range n {
		req.Tasks = append(req.Tasks, &apiv1.TaskSpec{Key: fmt.Sprintf("t%d", i), Job: "job", Command: []string{"true"}})
	}
	if _, err := w.tasks.SubmitTasks(w.t.Context(), req); err != nil {
		w.t.Fatal(err)
	}
}
