package driver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// sessions is every executor's open stream.
type sessions struct {
	last     atomic.Uint64
	mu       sync.Mutex
	open     map[uint64]*session
	stopping error // why no session may begin any more
}

func newSessions() *sessions { return &sessions{open: make(map[uint64]*session)} }

// session is one executor's stream. Its outbox is filled by the application's goroutine and emptied by the stream's writer.
type session struct {
	number   uint64
	app      *runner.Member
	executor snapshot.ID
	outbox   *outbox
}

// Carry sends an effect to the session it is for. Effects of sessions that are no longer open are dropped: the application has heard, or will, that they ended.
func (s *Server) Carry(_ runner.Key, effect application.Effect) {
	switch e := effect.(type) {
	case application.Admit:
		s.sessions.add(e.Session, s.admitted(e))
	case application.LaunchTasks:
		s.sessions.add(e.Session, launches(e.Launches)...)
	case application.KillTasks:
		s.sessions.add(e.Session, kills(e)...)
	case application.AckReports:
		s.sessions.add(e.Session, acknowledgements(e.Tasks)...)
	case application.DrainExecutor:
		drain := &apiv1.Drain{Reason: e.Text}
		s.sessions.add(e.Session, piece{around(drain), func(m *apiv1.AttachResponse) { m.Drain = drain }})
	case application.StopExecutor:
		stop := &apiv1.Stop{Reason: e.Text}
		s.sessions.add(e.Session, piece{around(stop), func(m *apiv1.AttachResponse) { m.Stop = stop }})
	case application.Refuse:
		s.sessions.with(e.Session, func(x *session) {
			x.outbox.close(refuse(codes.PermissionDenied, "REGISTRATION_REFUSED", "executor %d may not register: %s", e.Executor, e.Text))
		})
	case application.EndSession:
		s.sessions.with(e.Session, func(x *session) {
			x.outbox.close(refuse(codes.Aborted, "SESSION_ENDED", "the session of executor %d is over: %s", e.Executor, e.Text))
		})
	}
}

func (ss *sessions) with(number uint64, do func(*session)) {
	ss.mu.Lock()
	x := ss.open[number]
	ss.mu.Unlock()
	if x != nil {
		do(x)
	}
}

func (ss *sessions) add(number uint64, pieces ...piece) {
	ss.with(number, func(x *session) {
		for _, p := range pieces {
			x.outbox.add(p)
		}
	})
}

// enter opens a session. Once the daemon stops it refuses: reconnectAll would not reach that session any more, and nobody would end it.
func (ss *sessions) enter(x *session) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stopping != nil {
		return ss.stopping
	}
	ss.open[x.number] = x
	return nil
}

func (ss *sessions) leave(x *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.open, x.number)
}

// reconnectAll tells executors to come back later, ends their sessions and lets no other begin.
func (ss *sessions) reconnectAll(reason string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.stopping = refuse(codes.Unavailable, "RESTARTING", "%s", reason)
	reconnect := &apiv1.Reconnect{Reason: reason}
	for _, x := range ss.open {
		x.outbox.add(piece{around(reconnect), func(m *apiv1.AttachResponse) { m.Reconnect = reconnect }})
		x.outbox.finish(ss.stopping)
	}
}

// executorService is what executors speak with.
type executorService struct {
	apiv1.UnimplementedExecutorServiceServer
	*Server
}

// Attach serves one session from its first message to its end.
func (s *executorService) Attach(stream apiv1.ExecutorService_AttachServer) error {
	received := make(chan incoming)
	over := make(chan struct{})
	defer close(over)
	// The reader ends when this method returns: grpc then fails its Recv.
	go receive(stream, received, over)

	register, err := s.first(stream.Context(), received)
	if err != nil {
		return err
	}
	app, err := s.identify(stream.Context(), register)
	if err != nil {
		return err
	}
	x := &session{
		number: s.sessions.last.Add(1), app: app, executor: snapshot.ID(register.GetExecutor()),
		outbox: newOutbox(s.cfg.SessionBacklog, apiv1.MaxMessage),
	}
	if err = s.sessions.enter(x); err != nil {
		return err
	}
	defer s.sessions.leave(x)
	attached := application.Attached{
		Executor: x.executor, Session: x.number, UID: register.GetPodUid(), Slots: register.GetSlots(), Holds: refsIn(register.GetHolds()),
	}
	if err = app.PostWhenRoom(stream.Context(), attached); err != nil {
		return err
	}
	leaving, err := s.serve(stream, x, received)
	app.Post(application.Detached{Executor: x.executor, Session: x.number, Text: why(err), Leaving: leaving})
	s.log.LogAttrs(stream.Context(), slog.LevelDebug, "session ended", slog.String("application", app.Key().String()),
		slog.Uint64("executor", uint64(x.executor)), slog.Uint64("session", x.number), slog.String("why", why(err)))
	return err
}

type incoming struct {
	msg *apiv1.AttachRequest
	err error
}

func receive(stream apiv1.ExecutorService_AttachServer, to chan<- incoming, over <-chan struct{}) {
	for {
		msg, err := stream.Recv()
		select {
		case to <- incoming{msg, err}:
		case <-over:
			return
		}
		if err != nil {
			return
		}
	}
}

func (s *executorService) first(ctx context.Context, received <-chan incoming) (*apiv1.Register, error) {
	late := time.NewTimer(s.cfg.RegisterTimeout)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, refuse(codes.DeadlineExceeded, "REGISTER_LATE", "the first message did not come within %v", s.cfg.RegisterTimeout)
	case in := <-received:
		if in.err != nil {
			return nil, in.err
		}
		register := in.msg.GetRegister()
		if register == nil {
			return nil, refuse(codes.InvalidArgument, "REGISTER_MISSING", "the first message is not a registration")
		}
		return register, nil
	}
}

// identify finds the application of an executor that proves who it is. An unknown application is not a refusal for good: the daemon may just have started.
func (s *executorService) identify(ctx context.Context, r *apiv1.Register) (*runner.Member, error) {
	key := runner.Key{Namespace: r.GetNamespace(), ID: r.GetApplication()}
	if !s.parts.Credentials.valid(bearer(ctx), key.Namespace, key.ID, r.GetExecutor(), r.GetPodName()) {
		return nil, refuse(codes.Unauthenticated, "CREDENTIAL_INVALID", "the credential is not that of executor %d of application %s in pod %q",
			r.GetExecutor(), key, r.GetPodName())
	}
	app, err := s.parts.Applications.Find(key)
	if err != nil {
		return nil, refuse(codes.Unavailable, "APPLICATION_UNKNOWN", "application %s is not known to the daemon now", key)
	}
	cfg := app.Definition().Config
	if want := pod.Name(cfg.ID, cfg.Incarnation, snapshot.ID(r.GetExecutor())); r.GetPodName() != want {
		return nil, refuse(codes.PermissionDenied, "OTHER_LIFE", "pod %q is of another life of application %s: its executor %d is %q",
			r.GetPodName(), key, r.GetExecutor(), want)
	}
	return app, nil
}

// serve carries messages both ways until one side ends. It reports whether the executor said that it leaves.
func (s *executorService) serve(stream apiv1.ExecutorService_AttachServer, x *session, received <-chan incoming) (leaving bool, err error) {
	written := make(chan error, 1)
	p := &pulse{}
	go func() { written <- x.outbox.drain(stream.Context(), stream.Send, p) }()
	watch := time.NewTicker(s.cfg.StallTimeout)
	defer watch.Stop()
	for {
		select {
		case in := <-received:
			if in.err != nil {
				x.outbox.close(in.err)
				if errors.Is(in.err, io.EOF) {
					return leaving, nil
				}
				return leaving, in.err
			}
			leaving = leaving || in.msg.GetLeave() != nil
			if err := s.hear(stream.Context(), x, in.msg); err != nil {
				return leaving, err
			}
		case err := <-written:
			return leaving, err
		case <-watch.C:
			if p.stalled() {
				return leaving, refuse(codes.ResourceExhausted, "TOO_SLOW", "executor %d took no message for %v", x.executor, s.cfg.StallTimeout)
			}
		}
	}
}

func (s *executorService) hear(ctx context.Context, x *session, msg *apiv1.AttachRequest) error {
	if reports := msg.GetReports(); len(reports) > 0 {
		ev := application.Reported{Executor: x.executor, Session: x.number, Reports: reportsIn(reports, s.cfg.OutputLimit)}
		if err := x.app.PostWhenRoom(ctx, ev); err != nil {
			return err
		}
	}
	if beat := msg.GetHeartbeat(); beat != nil {
		ev := application.Beat{Executor: x.executor, Session: x.number, Memory: beat.GetMemoryBytes(), Disk: beat.GetDiskBytes()}
		if err := x.app.PostWhenRoom(ctx, ev); err != nil {
			return err
		}
	}
	if leave := msg.GetLeave(); leave != nil {
		return x.app.PostWhenRoom(ctx, application.Leaving{Executor: x.executor, Session: x.number, Text: clip(leave.GetText())})
	}
	return nil
}

func why(err error) string {
	if err == nil {
		return "the executor closed the stream"
	}
	return clip(status.Convert(err).Message())
}
