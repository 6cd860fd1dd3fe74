package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// How sessions are sought.
const (
	attachTimeout   = 10 * time.Second       // from the call to the admission
	firstPause      = 250 * time.Millisecond // bound of the first pause; it doubles
	longestPause    = 4 * time.Second        // and ends here
	reconnectSpread = 2 * time.Second        // over which executors come back that were asked to
	defaultBeat     = 10 * time.Second
	shortestBeat    = 50 * time.Millisecond
)

var (
	errReconnect = errors.New("the daemon asked to be called again")
	errSilent    = fmt.Errorf("the daemon did not answer within %v", attachTimeout)
)

// attend holds one session after the other until life ends, or there is no point in going on. It returns why.
func (a *Agent) attend(life context.Context) error {
	gone := time.Now()
	for try := 0; ; try++ {
		left := a.lease - time.Since(gone)
		admitted, err := a.session(life, left)
		if admitted {
			gone, try = time.Now(), 0
			left = a.lease
		}
		if life.Err() != nil {
			return context.Cause(life)
		}
		if errors.Is(err, errStopped) || errors.Is(err, errLeft) || errors.Is(err, ErrRefused) {
			return err
		}
		wait := pause(try, err)
		a.log.LogAttrs(life, slog.LevelWarn, "session ended", slog.Any("why", err), slog.Duration("again_in", wait))
		if within(life, a.bye, min(wait, left)) {
			return errLeft
		}
		if a.lease-time.Since(gone) <= 0 {
			return fmt.Errorf("%w: it was not reached for the lease of %v; the last try: %w", ErrAbandoned, a.lease, err)
		}
	}
}

// pause is how long to wait before the next session: anything up to a bound that grows, so that a thousand executors do not come at once.
func pause(try int, why error) time.Duration {
	if errors.Is(why, errReconnect) {
		return rand.N(reconnectSpread)
	}
	return rand.N(min(longestPause, firstPause<<min(try, 10)))
}

// session holds one session, from the call to its end. It reports whether the daemon admitted the executor, and why the session ended.
func (a *Agent) session(life context.Context, patience time.Duration) (admitted bool, err error) {
	conn, err := a.dial()
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, end := context.WithCancelCause(metadata.AppendToOutgoingContext(life, "authorization", "Bearer "+string(a.cfg.Token)))
	defer end(nil)
	late := time.AfterFunc(min(attachTimeout, patience), func() { end(errSilent) })
	defer late.Stop()
	stream, first, err := a.register(ctx, conn)
	if err != nil {
		return false, verdict(ctx, err)
	}
	if !late.Stop() {
		return false, errSilent
	}
	a.admit(ctx, first.GetAdmitted())
	var writing sync.WaitGroup
	writing.Go(func() { a.write(ctx, stream, first.GetAdmitted().GetHeartbeatInterval().AsDuration()) })
	err = a.read(stream, first)
	end(err)
	writing.Wait()
	return true, verdict(ctx, err)
}

// register says who the executor is and what it holds, and waits for the answer.
func (a *Agent) register(ctx context.Context, conn *grpc.ClientConn) (apiv1.ExecutorService_AttachClient, *apiv1.AttachResponse, error) {
	stream, err := apiv1.NewExecutorServiceClient(conn).Attach(ctx)
	if err != nil {
		return nil, nil, err
	}
	err = stream.Send(&apiv1.AttachRequest{Register: &apiv1.Register{
		Application: a.cfg.Application, Namespace: a.cfg.Namespace, Executor: a.cfg.Executor, PodName: a.cfg.PodName, PodUid: a.cfg.PodUID,
		Slots: a.cfg.Slots, Holds: a.ledger.holds(), Version: a.cfg.Version,
	}})
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF the reason is in what is received
		return nil, nil, err
	}
	first, err := stream.Recv()
	switch {
	case err != nil:
		return nil, nil, err
	case first.GetStop() != nil:
		return nil, nil, stopped(first.GetStop())
	case first.GetAdmitted() == nil:
		return nil, nil, errors.New("the daemon's first message is no admission")
	}
	return stream, first, nil
}

// admit takes over what the daemon says about the session.
func (a *Agent) admit(ctx context.Context, admitted *apiv1.Admitted) {
	if lease := admitted.GetLease().AsDuration(); lease > 0 {
		a.lease = lease
	}
	if limit := admitted.GetOutputLimitBytes(); limit > 0 {
		a.output.Store(int64(min(limit, maxOutput)))
	}
	for _, r := range admitted.GetDiscard() {
		a.ledger.kill(refOf(r), order{how: drop})
	}
	a.ledger.repeat()
	a.log.LogAttrs(ctx, slog.LevelInfo, "session opened", slog.Uint64("session", admitted.GetSession()), slog.Duration("lease", a.lease))
}

// read does what the daemon says until the session is over, and returns why it is.
func (a *Agent) read(stream apiv1.ExecutorService_AttachClient, msg *apiv1.AttachResponse) error {
	for {
		for _, r := range msg.GetAcknowledged() {
			a.ledger.acknowledge(refOf(r))
		}
		for _, x := range msg.GetLaunches() {
			a.ledger.launch(x)
		}
		for _, x := range msg.GetKills() {
			a.ledger.kill(refOf(x.GetTask()), order{how: cancel, reason: x.GetReason()})
		}
		switch {
		case msg.GetStop() != nil:
			return stopped(msg.GetStop())
		case msg.GetReconnect() != nil:
			return fmt.Errorf("%w: %s", errReconnect, msg.GetReconnect().GetReason())
		case msg.GetDrain() != nil:
			a.ledger.close("the executor is drained: " + msg.GetDrain().GetReason())
		}
		var err error
		if msg, err = stream.Recv(); err != nil {
			return err
		}
	}
}

func stopped(s *apiv1.Stop) error { return fmt.Errorf("%w: %s", errStopped, s.GetReason()) }

// write sends all there is to say, whenever there is something, and a sign of life in each interval. It returns when the session is over.
func (a *Agent) write(ctx context.Context, stream apiv1.ExecutorService_AttachClient, interval time.Duration) {
	if interval <= 0 {
		interval = defaultBeat
	}
	beat := time.NewTicker(max(interval, shortestBeat))
	defer beat.Stop()
	for {
		m := &apiv1.AttachRequest{}
		something, more := a.ledger.collect(m)
		if something && stream.Send(m) != nil { // the reader hears why
			return
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-a.ledger.changed:
		case <-beat.C:
			if stream.Send(&apiv1.AttachRequest{Heartbeat: a.heartbeat()}) != nil {
				return
			}
		case <-a.bye:
			a.farewell(stream)
			return
		}
	}
}

// farewell sends the last words and hangs up; the daemon then ends the session.
func (a *Agent) farewell(stream apiv1.ExecutorService_AttachClient) {
	for more := true; more; {
		m := &apiv1.AttachRequest{}
		var something bool
		something, more = a.ledger.collect(m)
		if something && stream.Send(m) != nil {
			return
		}
	}
	_ = stream.CloseSend() // an error would say that the stream is broken, which ends the session as well
}

// verdict makes an error that tells why a session ended out of what its stream said.
func verdict(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, err) {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the daemon closed the session")
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		return fmt.Errorf("%w: %s", ErrRefused, s.Message())
	default:
		return err
	}
}
