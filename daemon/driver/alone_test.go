package driver

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/spec"
	"github.com/retinue-sched/retinue/hostabi"
)

// alone is a server without a network or a cluster, for the bubble that it is made in, and its one application. The set runs until stop.
type alone struct {
	*Server
	app  *runner.Member
	stop context.CancelFunc
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	set := runner.NewSet(runner.Carriers{
		Pods: func(runner.Key, ...application.Effect) {}, Sessions: func(runner.Key, application.Effect) {},
		Policies: undecided{}, Incarnation: func() (uint32, error) { return 1, nil },
		Joined: func(runner.Key) {}, Left: func(runner.Key) {},
	}, log)
	ctx, stop := context.WithCancel(context.Background())
	go func() { _ = set.Run(ctx) }()
	t.Cleanup(stop)
	def, err := spec.Parse(&apiv1.ApplicationSpec{Id: "app", Profiles: []*apiv1.ProfileSpec{{}}}, spec.Defaults{
		Namespace: "default", Namespaces: []string{"default"}, Image: "image",
		Config: application.Config{
			Batch: time.Second, Resync: time.Hour, DecisionDeadline: time.Second, MaxTaskAttempts: 3, MaxQueued: 100, RetainTasks: 100,
			RetainBytes: 1 << 20, SessionTimeout: time.Hour, ReattachGrace: time.Second,
			Failures: application.FailureBudget{Threshold: 100, Window: time.Minute, Initial: time.Second, Max: time.Minute},
		},
		Profile: application.Profile{Slots: 1, BatchSize: 10, IdleTimeout: time.Minute, CreationTimeout: time.Minute},
		Pod:     pod.Spec{Address: "nowhere:1", Program: "executor", Lease: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	app, err := set.Create(t.Context(), def)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(DefaultConfig(), Parts{Applications: set, Tokens: NewTokens(), Credentials: NewExecutorKeys([32]byte{}), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return &alone{Server: s, app: app, stop: stop}
}

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

// everything is a context of a caller who may do it.
func everything(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithValue(t.Context(), callerKey{}, caller{role: admin, namespace: "*"}))
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

// A session that its application could not hear of, because the stream broke before, leaves nothing behind.
func TestSessionThatNeverBeganLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		a.stop() // from now on the application takes nothing out of its inbox
		synctest.Wait()
		for range 1 << 15 {
			a.app.Post(application.Beat{Executor: 1})
		}
		cancel, ended := a.begin(t)
		synctest.Wait()
		if n := a.open(); n != 1 {
			t.Fatalf("%d sessions wait for the application, want 1", n)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("the session of a broken stream ended without an error")
		}
		if n := a.open(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// An executor that registers while the daemon stops is sent away like those that are there: nothing would end its session later.
func TestNoSessionBeginsWhileTheDaemonStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		a.sessions.reconnectAll("the daemon restarts")
		_, ended := a.begin(t)
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want to be told to come back", err)
		}
	})
}
