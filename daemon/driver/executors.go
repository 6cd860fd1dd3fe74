package driver

import (
	"context"
	"errors"
	"io"
	"strconv"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Logs reads the log of a pod's container: the last lines (0: all), and what is added later if follow is set. Closing it ends a read.
type Logs func(ctx context.Context, namespace, pod string, tail int64, follow bool) (io.ReadCloser, error)

// ListExecutors returns a page of an application's executors, by number.
func (s *applicationService) ListExecutors(ctx context.Context, req *apiv1.ListExecutorsRequest) (*apiv1.ListExecutorsResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	after, err := pageNumber(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	status, err := m.Fresh(ctx)
	if err != nil {
		return nil, failed(err)
	}
	out := &apiv1.ListExecutorsResponse{}
	p := page{left: pageSize(req.GetPageSize())}
	profiles := profileNames(m)
	var last snapshot.ID
	for e := range status.Executors.All() {
		if uint64(e.ID) <= after {
			continue
		}
		x := s.executor(&e, profiles)
		if !p.add(around(x)) {
			out.NextPageToken = pageAfter(strconv.FormatUint(uint64(last), 10))
			break
		}
		out.Executors, last = append(out.Executors, x), e.ID
	}
	return out, nil
}

// ReleaseExecutors drains or kills executors.
func (s *applicationService) ReleaseExecutors(ctx context.Context, req *apiv1.ReleaseExecutorsRequest) (*apiv1.ReleaseExecutorsResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	ids := make([]snapshot.ID, len(req.GetExecutors()))
	for i, id := range req.GetExecutors() {
		ids[i] = snapshot.ID(id)
	}
	release := func(request uint64) application.Event {
		return application.ReleaseExecutors{Request: request, Executors: ids, Kill: req.GetKill(), Text: clip(req.GetReason())}
	}
	if err := s.ask(ctx, m, release); err != nil {
		return nil, err
	}
	return &apiv1.ReleaseExecutorsResponse{}, nil
}

// ReadExecutorLog streams an executor's log.
func (s *applicationService) ReadExecutorLog(req *apiv1.ReadExecutorLogRequest, stream apiv1.ApplicationService_ReadExecutorLogServer) error {
	m, err := s.find(stream.Context(), req.GetNamespace(), req.GetApplication())
	if err != nil {
		return err
	}
	e, ok := m.Current().Executors.Executor(snapshot.ID(req.GetExecutor()))
	if !ok {
		return refuse(codes.NotFound, "NO_SUCH_EXECUTOR", "application %s has no executor %d: `retinue get executors` lists those there are", m.Key(), req.GetExecutor())
	}
	return tell(s.Server, stream, func(ctx context.Context, send func(*apiv1.ReadExecutorLogResponse) error) error {
		log, err := s.parts.Logs(ctx, m.Key().Namespace, e.Name, req.GetTailLines(), req.GetFollow())
		if err != nil {
			return refuse(codes.NotFound, "NO_LOG", "reading the log of pod %s: %v", e.Name, err)
		}
		context.AfterFunc(ctx, func() { _ = log.Close() }) // ends a read that waits for more
		if err := relay(log, send); err != nil {
			return refuse(codes.Unavailable, "LOG_BROKEN", "reading the log of pod %s: %v", e.Name, err)
		}
		return nil
	})
}

// relay sends a log until its end.
func relay(log io.Reader, send func(*apiv1.ReadExecutorLogResponse) error) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if sendErr := send(&apiv1.ReadExecutorLogResponse{Chunk: buf[:n]}); sendErr != nil {
				return sendErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
