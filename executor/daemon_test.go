package executor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/executor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait, so that a failing test ends.
const patience = 30 * time.Second

// daemon is a real server that does only what a test tells it to.
type daemon struct {
	apiv1.UnimplementedExecutorServiceServer
	t        testing.TB
	address  string
	server   *grpc.Server
	sessions chan *session
	last     *session
}

// session is one stream, in the hands of a test.
type session struct {
	t        testing.TB
	register *apiv1.Register
	token    string
	stream   apiv1.ExecutorService_AttachServer
	heard    chan *apiv1.AttachRequest // closed when the executor hung up
	over     chan error                // what Attach is to return
	reports  []*apiv1.Report           // heard and not asked for yet
}

func (d *daemon) Attach(stream apiv1.ExecutorService_AttachServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	s := &session{t: d.t, register: first.GetRegister(), token: fmt.Sprint(md.Get("authorization")), stream: stream, heard: make(chan *apiv1.AttachRequest), over: make(chan error, 1)}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() { // ends with the stream, and so when this method has returned
		defer close(s.heard)
		for {
			m, err := stream.Recv()
			if err != nil {
				if err == io.EOF { //nolint:errorlint // the stream's contract
					s.hangUp(nil)
				}
				return
			}
			select {
			case s.heard <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	d.sessions <- s
	select {
	case err := <-s.over:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

func (s *session) hangUp(err error) {
	select {
	case s.over <- err:
	default:
	}
}

// serve begins a daemon on a Unix socket.
func serve(t testing.TB, path string) *daemon {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, address: "unix://" + path, server: grpc.NewServer(), sessions: make(chan *session, 16)}
	apiv1.RegisterExecutorServiceServer(d.server, d)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = d.server.Serve(listener)
	}()
	t.Cleanup(func() {
		d.server.Stop()
		<-served
	})
	return d
}

func newDaemon(t testing.TB) *daemon {
	return serve(t, filepath.Join(t.TempDir(), "daemon.sock"))
}

// next waits for the executor's next session and lets it in.
func (d *daemon) next() *session {
	d.t.Helper()
	s := d.knock()
	s.send(&apiv1.AttachResponse{Admitted: &apiv1.Admitted{Session: 1, HeartbeatInterval: durationpb.New(time.Hour), Lease: durationpb.New(time.Minute), OutputLimitBytes: 1000}})
	return s
}

// knock waits for the executor's next session.
func (d *daemon) knock() *session {
	d.t.Helper()
	d.last = receive(d.t, d.sessions, "a session")
	return d.last
}

func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case x, ok := <-from:
		if !ok {
			t.Fatalf("waiting for %s: the other side hung up", what)
		}
		return x
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func (s *session) send(m *apiv1.AttachResponse) {
	s.t.Helper()
	if err := s.stream.Send(m); err != nil {
		s.t.Fatalf("sending to the executor: %v", err)
	}
}

func taskRef(id uint64) *apiv1.TaskRef { return &apiv1.TaskRef{Task: id, Attempt: 1} }

// launch gives the executor a task.
func (s *session) launch(id uint64, spec *apiv1.TaskSpec) {
	s.t.Helper()
	s.send(&apiv1.AttachResponse{Launches: []*apiv1.Launch{{Task: taskRef(id), Spec: spec}}})
}

func (s *session) ack(ids ...uint64) {
	s.t.Helper()
	m := &apiv1.AttachResponse{}
	for _, id := range ids {
		m.Acknowledged = append(m.Acknowledged, taskRef(id))
	}
	s.send(m)
}

func sh(script string) *apiv1.TaskSpec {
	return &apiv1.TaskSpec{Key: "key", Command: []string{"sh", "-c", script}}
}

// report waits for a report that is true to the wish. Others stay, to be asked for later.
func (s *session) report(wish func(*apiv1.Report) bool) *apiv1.Report {
	s.t.Helper()
	for {
		if i := slices.IndexFunc(s.reports, wish); i >= 0 {
			r := s.reports[i]
			s.reports = slices.Delete(s.reports, i, i+1)
			return r
		}
		s.reports = append(s.reports, receive(s.t, s.heard, "a report").GetReports()...)
	}
}

// started waits for the first task to run.
func (s *session) started() {
	s.t.Helper()
	s.report(func(r *apiv1.Report) bool {
		return r.GetTask().GetTask() == 1 && r.GetOutcome() == apiv1.Outcome_OUTCOME_STARTED
	})
}

// end waits for the end of a task.
func (s *session) end(id uint64) *apiv1.Report {
	s.t.Helper()
	return s.report(func(r *apiv1.Report) bool {
		return r.GetTask().GetTask() == id && r.GetOutcome() != apiv1.Outcome_OUTCOME_STARTED
	})
}

// agent is an executor that runs in the test's own process.
type agent struct {
	t     testing.TB
	cfg   executor.Config
	leave context.CancelFunc
	ended chan error
}

// run begins an executor. When the test ends it has to have ended, too, or it is stopped.
func run(t testing.TB, d *daemon, change func(*executor.Config)) *agent {
	t.Helper()
	cfg := executor.DefaultConfig()
	cfg.Address, cfg.Application, cfg.Namespace, cfg.Executor, cfg.Token = d.address, "app", "default", 3, "secret"
	cfg.PodName, cfg.PodUID, cfg.Slots, cfg.WorkDir = "app-i1-exec-3", "uid", 2, t.TempDir()
	cfg.LeaveGrace, cfg.KillGrace = 100*time.Millisecond, time.Second
	if change != nil {
		change(&cfg)
	}
	a, err := executor.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &agent{t: t, cfg: cfg, leave: cancel, ended: make(chan error, 1)}
	go func() { x.ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		if d.last != nil {
			_ = d.last.stream.Send(&apiv1.AttachResponse{Stop: &apiv1.Stop{}}) // it may have ended, or have no session
		}
		cancel()
		if len(x.ended) == 0 {
			x.ended <- receive(t, x.ended, "the end of the executor")
		}
	})
	return x
}

// end waits for the executor's end.
func (x *agent) end() error {
	x.t.Helper()
	err := receive(x.t, x.ended, "the end of the executor")
	x.ended <- err
	return err
}

// fifo makes a named pipe: who reads it waits for who writes it.
func fifo(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ready launches a script and waits until it writes to $READY, which it returns.
func (s *session) ready(id uint64, script string) string {
	s.t.Helper()
	name := fifo(s.t)
	spec := sh(script)
	spec.Env = []*apiv1.EnvVar{{Name: "READY", Value: name}}
	spec.KillGrace = durationpb.New(200 * time.Millisecond)
	s.launch(id, spec)
	text, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// stubborn is a script that does not hear when it is asked to end.
const stubborn = "trap '' TERM; echo > $READY; while :; do sleep 0.01; done"

// write lets the reader of a named pipe go on.
func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
