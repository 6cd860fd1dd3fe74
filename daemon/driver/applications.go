package driver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// watchEvery is the shortest time between two messages of an application watch.
const watchEvery = 200 * time.Millisecond

// Logs reads the log of a pod's container: the last lines (0: all), and what is added later if follow is set.
type Logs func(ctx context.Context, namespace, pod string, tail int64, follow bool) (io.ReadCloser, error)

type applicationService struct {
	apiv1.UnimplementedApplicationServiceServer
	*Server
}

// find returns an application that the caller may see.
func (s *Server) find(ctx context.Context, namespace, id string) (*runner.Member, error) {
	if namespace == "" {
		namespace = s.parts.Defaults.Namespace
	}
	key := runner.Key{Namespace: namespace, ID: id}
	if id == "" {
		return nil, refuse(codes.InvalidArgument, "APPLICATION_MISSING", "the request names no application")
	}
	if !callerOf(ctx).sees(namespace) {
		return nil, notFound(key)
	}
	m, err := s.parts.Applications.Find(key)
	if err != nil {
		return nil, notFound(key)
	}
	return m, nil
}

// ApplyApplication creates an application, or changes it.
func (s *applicationService) ApplyApplication(ctx context.Context, req *apiv1.ApplyApplicationRequest) (*apiv1.ApplyApplicationResponse, error) {
	src := proto.CloneOf(req.GetSpec())
	if src == nil {
		return nil, refuse(codes.InvalidArgument, "SPEC_MISSING", "the request has no specification")
	}
	if src.GetId() == "" {
		src.Id = newID()
	}
	def, err := spec.Parse(src, s.parts.Defaults)
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "SPEC_INVALID", "%v", err)
	}
	key := runner.Key{Namespace: def.Config.Namespace, ID: def.Config.ID}
	if !callerOf(ctx).sees(key.Namespace) {
		return nil, refuse(codes.PermissionDenied, "NAMESPACE_DENIED", "%s may not use namespace %s", callerOf(ctx).name, key.Namespace)
	}
	if there, findErr := s.parts.Applications.Find(key); findErr == nil {
		return s.update(ctx, there, def, req.GetMustBeNew())
	}
	if def.Binding.Policy != "" || def.Binding.Settings != "" {
		if _, _, err = s.parts.Policies.Bind(ctx, key, def.Binding); err != nil {
			return nil, policyRefused(err)
		}
	}
	m, err := s.parts.Applications.Create(ctx, def)
	if errors.Is(err, runner.ErrExists) { // somebody else was faster
		return s.update(ctx, m, def, req.GetMustBeNew())
	}
	if err != nil {
		s.parts.Policies.Forget(key)
		return nil, failed(err)
	}
	s.tellPolicy(m)
	s.log.LogAttrs(ctx, slog.LevelInfo, "application created", slog.String("application", key.String()), slog.String("by", callerOf(ctx).name))
	return &apiv1.ApplyApplicationResponse{Application: s.application(m), Created: true}, nil
}

func (s *applicationService) update(ctx context.Context, m *runner.Member, def *spec.Application, mustBeNew bool) (*apiv1.ApplyApplicationResponse, error) {
	if mustBeNew {
		return nil, refuse(codes.AlreadyExists, "APPLICATION_EXISTS", "application %s exists already: choose another id, or apply without insisting on a new one", m.Key())
	}
	if def.Binding != m.Definition().Binding && def.Binding.Policy != "" {
		if _, _, err := s.parts.Policies.Bind(ctx, m.Key(), def.Binding); err != nil {
			return nil, policyRefused(err)
		}
	}
	refusal, err := s.parts.Applications.Update(ctx, m, def)
	if err != nil {
		return nil, failed(err)
	}
	if err := refused(refusal); err != nil {
		return nil, err
	}
	s.tellPolicy(m)
	s.log.LogAttrs(ctx, slog.LevelInfo, "application changed", slog.String("application", m.Key().String()), slog.String("by", callerOf(ctx).name))
	return &apiv1.ApplyApplicationResponse{Application: s.application(m)}, nil
}

// GetApplication returns one application.
func (s *applicationService) GetApplication(ctx context.Context, req *apiv1.GetApplicationRequest) (*apiv1.GetApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	if _, err := m.Fresh(ctx); err != nil {
		return nil, failed(err)
	}
	return &apiv1.GetApplicationResponse{Application: s.application(m)}, nil
}

func (s *applicationService) visible(ctx context.Context, namespace, id string) []*runner.Member {
	var out []*runner.Member
	for _, m := range s.parts.Applications.All(namespace) {
		if callerOf(ctx).sees(m.Key().Namespace) && (id == "" || id == m.Key().ID) {
			out = append(out, m)
		}
	}
	return out
}

// ListApplications returns the applications that the caller may see.
func (s *applicationService) ListApplications(ctx context.Context, req *apiv1.ListApplicationsRequest) (*apiv1.ListApplicationsResponse, error) {
	out := &apiv1.ListApplicationsResponse{}
	for _, m := range s.visible(ctx, req.GetNamespace(), "") {
		out.Applications = append(out.Applications, s.application(m))
	}
	return out, nil
}

// WatchApplications sends applications as they are, and again whenever one changes.
func (s *applicationService) WatchApplications(req *apiv1.WatchApplicationsRequest, stream apiv1.ApplicationService_WatchApplicationsServer) error {
	ctx := stream.Context()
	sent := make(map[runner.Key]*application.Status)
	pace := time.NewTicker(watchEvery)
	defer pace.Stop()
	for first := true; ; first = false {
		changed := s.parts.Applications.Changed()
		msg := &apiv1.WatchApplicationsResponse{}
		now := make(map[runner.Key]*application.Status, len(sent))
		for _, m := range s.visible(ctx, req.GetNamespace(), req.GetApplication()) {
			now[m.Key()] = m.Current()
			if sent[m.Key()] != now[m.Key()] {
				msg.Applications = append(msg.Applications, s.application(m))
			}
		}
		for key := range sent {
			if now[key] == nil {
				msg.Deleted = append(msg.Deleted, key.String())
			}
		}
		sent = now
		if first || len(msg.GetApplications())+len(msg.GetDeleted()) > 0 {
			if err := stream.Send(msg); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return refuse(codes.Unavailable, "RESTARTING", "the daemon restarts")
		case <-changed:
		case <-pace.C:
		}
	}
}

// ScaleApplication sets how many executors are wanted.
func (s *applicationService) ScaleApplication(ctx context.Context, req *apiv1.ScaleApplicationRequest) (*apiv1.ScaleApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	names := profileNames(m)
	var targets []snapshot.Target
	for i, name := range names {
		if count, ok := req.GetTargets()[name]; ok {
			targets = append(targets, snapshot.Target{Profile: snapshot.Profile(i), Count: count})
		}
	}
	if len(targets) != len(req.GetTargets()) || len(targets) == 0 {
		return nil, refuse(codes.InvalidArgument, "PROFILE_UNKNOWN", "the request must name profiles of application %s: it has %v", m.Key(), names)
	}
	if err := s.ask(ctx, m, func(request uint64) application.Event {
		return application.SetTargets{Request: request, Targets: targets}
	}); err != nil {
		return nil, err
	}
	return &apiv1.ScaleApplicationResponse{Application: s.application(m)}, nil
}

// ask makes a call whose reply holds nothing but a refusal.
func (s *Server) ask(ctx context.Context, m *runner.Member, event func(uint64) application.Event) error {
	reply, err := m.Call(ctx, event)
	if err != nil {
		return failed(err)
	}
	return refused(reply.Refused)
}

// StopApplication ends an application's work.
func (s *applicationService) StopApplication(ctx context.Context, req *apiv1.StopApplicationRequest) (*apiv1.StopApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	stop := func(request uint64) application.Event {
		return application.Stop{Request: request, KeepExecutors: req.GetKeepExecutors()}
	}
	if err := s.ask(ctx, m, stop); err != nil {
		return nil, err
	}
	return &apiv1.StopApplicationResponse{}, nil
}

// DeleteApplication stops an application, waits until its executors are gone, and forgets it.
func (s *applicationService) DeleteApplication(ctx context.Context, req *apiv1.DeleteApplicationRequest) (*apiv1.DeleteApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	if err := s.parts.Applications.Delete(ctx, m); err != nil {
		return nil, failed(err)
	}
	s.parts.Policies.Forget(m.Key())
	s.log.LogAttrs(ctx, slog.LevelInfo, "application deleted", slog.String("application", m.Key().String()), slog.String("by", callerOf(ctx).name))
	return &apiv1.DeleteApplicationResponse{}, nil
}

// ListExecutors returns an application's executors.
func (s *applicationService) ListExecutors(ctx context.Context, req *apiv1.ListExecutorsRequest) (*apiv1.ListExecutorsResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	if _, err := m.Fresh(ctx); err != nil {
		return nil, failed(err)
	}
	return &apiv1.ListExecutorsResponse{Executors: s.executors(m)}, nil
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
	log, err := s.parts.Logs(stream.Context(), m.Key().Namespace, e.Name, req.GetTailLines(), req.GetFollow())
	if err != nil {
		return refuse(codes.NotFound, "NO_LOG", "reading the log of pod %s: %v", e.Name, err)
	}
	defer func() { _ = log.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := log.Read(buf)
		if n > 0 {
			if sendErr := stream.Send(&apiv1.ReadExecutorLogResponse{Chunk: buf[:n]}); sendErr != nil {
				return sendErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuse(codes.Unavailable, "LOG_BROKEN", "reading the log of pod %s: %v", e.Name, err)
		}
	}
}
