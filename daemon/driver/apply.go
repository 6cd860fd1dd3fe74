package driver

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// maxSpec bounds a specification, so that it can be sent back with the application's status.
const maxSpec = apiv1.MaxMessage / 2

// ApplyApplication creates an application, or changes it.
func (s *applicationService) ApplyApplication(ctx context.Context, req *apiv1.ApplyApplicationRequest) (*apiv1.ApplyApplicationResponse, error) {
	def, err := s.parse(ctx, req.GetSpec())
	if err != nil {
		return nil, err
	}
	key := runner.Key{Namespace: def.Config.Namespace, ID: def.Config.ID}
	back, err := s.turns.take(ctx, key)
	if err != nil {
		return nil, err
	}
	defer back()
	m, err := s.parts.Applications.Find(key)
	created := err != nil
	switch {
	case created:
		m, err = s.create(ctx, key, def)
	case req.GetMustBeNew():
		return nil, refuse(codes.AlreadyExists, "APPLICATION_EXISTS", "application %s exists already: choose another id, or apply without insisting on a new one", key)
	default:
		err = s.update(ctx, m, def)
	}
	if err != nil {
		return nil, err
	}
	s.tellPolicy(m)
	s.log.LogAttrs(ctx, slog.LevelInfo, "application applied", slog.String("application", key.String()), slog.Bool("created", created),
		slog.String("by", callerOf(ctx).name))
	app, err := s.fresh(ctx, m)
	if err != nil {
		return nil, err
	}
	return &apiv1.ApplyApplicationResponse{Application: app, Created: created}, nil
}

// parse checks a specification. Whether the caller may use its namespace comes first: the errors that follow name what the daemon serves.
func (s *applicationService) parse(ctx context.Context, src *apiv1.ApplicationSpec) (*spec.Application, error) {
	if src == nil {
		return nil, refuse(codes.InvalidArgument, "SPEC_MISSING", "the request has no specification")
	}
	if size := proto.Size(src); size > maxSpec {
		return nil, refuse(codes.InvalidArgument, "SPEC_TOO_LARGE", "the specification has %d bytes, at most %d are kept", size, maxSpec)
	}
	src = proto.CloneOf(src)
	src.Namespace = s.namespace(ctx, src.GetNamespace())
	if err := within(ctx, src.GetNamespace()); err != nil {
		return nil, err
	}
	if src.GetId() == "" {
		src.Id = newID()
	}
	def, err := spec.Parse(src, s.parts.Defaults)
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "SPEC_INVALID", "%v", err)
	}
	if def.Binding.Policy == "" && def.Binding.Settings != "" {
		return nil, refuse(codes.InvalidArgument, "SPEC_INVALID", "application %q: policy.settings: they belong to a policy: name it in policy.policy", src.GetId())
	}
	return def, nil
}

// create makes an application whose policy decides from its first question on. The caller has the turn.
func (s *applicationService) create(ctx context.Context, key runner.Key, def *spec.Application) (*runner.Member, error) {
	if err := s.bind(ctx, key, def.Binding, def.Config.Mode, def.Config.Mode); err != nil {
		return nil, err
	}
	m, err := s.parts.Applications.Create(ctx, def)
	if err != nil {
		s.parts.Policies.Forget(key)
		return nil, failed(err)
	}
	return m, nil
}

// update changes an application and then who decides for it. The policy is tried before, so that one that does not work changes nothing, and
// the definition names it only once it decides, so that an update that was cut short can be made again. The caller has the turn.
func (s *applicationService) update(ctx context.Context, m *runner.Member, def *spec.Application) error {
	before := m.Definition()
	if def.Binding == before.Binding && def.Binding.Policy == "" {
		return s.keep(ctx, m, def)
	}
	if err := s.try(ctx, def.Binding); err != nil {
		return err
	}
	same := *def
	same.Binding, same.Source = before.Binding, proto.CloneOf(def.Source)
	same.Source.Policy = before.Source.GetPolicy()
	if err := s.configure(ctx, m, &same); err != nil {
		return err
	}
	if err := s.bind(ctx, m.Key(), def.Binding, def.Config.Mode, before.Config.Mode); err != nil {
		return err
	}
	return s.configure(ctx, m, def)
}

// keep changes an application about whose policy nothing is said, now or before: who decides, and how far that word goes, is what was chosen since.
func (s *applicationService) keep(ctx context.Context, m *runner.Member, def *spec.Application) error {
	if def.Source.GetMode() == "" {
		status, err := m.Fresh(ctx)
		if err != nil {
			return failed(err)
		}
		kept := *def
		kept.Config.Mode = status.Mode
		def = &kept
	}
	return s.configure(ctx, m, def)
}

func (s *applicationService) configure(ctx context.Context, m *runner.Member, def *spec.Application) error {
	refusal, err := s.parts.Applications.Update(ctx, m, def)
	if err != nil {
		return failed(err)
	}
	return refused(refusal)
}

// bind lets a policy decide for an application, or the default if none is named.
func (s *Server) bind(ctx context.Context, key runner.Key, to spec.Binding, mode, before application.Mode) error {
	if to.Policy == "" {
		s.parts.Policies.Forget(key)
		return nil
	}
	if _, _, err := s.parts.Policies.Bind(ctx, key, to, mode, before); err != nil {
		return policyRefused(err)
	}
	return nil
}

// try finds out whether a policy takes a binding. The default does.
func (s *Server) try(ctx context.Context, to spec.Binding) error {
	if to.Policy == "" {
		return nil
	}
	if err := s.parts.Policies.Try(ctx, to); err != nil {
		return policyRefused(err)
	}
	return nil
}

// turn finds an application that the caller may see and takes the turn of changing it.
func (s *Server) turn(ctx context.Context, namespace, id string) (m *runner.Member, back func(), err error) {
	if m, err = s.find(ctx, namespace, id); err != nil {
		return nil, nil, err
	}
	if back, err = s.turns.take(ctx, m.Key()); err != nil {
		return nil, nil, err
	}
	if m, err = s.find(ctx, namespace, id); err != nil { // it was deleted meanwhile
		back()
		return nil, nil, err
	}
	return m, back, nil
}

// DeleteApplication stops an application, waits until its executors are gone, and forgets it.
func (s *applicationService) DeleteApplication(ctx context.Context, req *apiv1.DeleteApplicationRequest) (*apiv1.DeleteApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	if err = s.end(ctx, m); err != nil {
		return nil, err
	}
	now, back, err := s.turn(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	defer back()
	if now != m { // somebody else deleted it, and there is a new one of its name
		return nil, notFound(m.Key())
	}
	if err := s.parts.Applications.Delete(ctx, m); err != nil {
		return nil, failed(err)
	}
	s.parts.Policies.Forget(m.Key())
	s.log.LogAttrs(ctx, slog.LevelInfo, "application deleted", slog.String("application", m.Key().String()), slog.String("by", callerOf(ctx).name))
	return &apiv1.DeleteApplicationResponse{}, nil
}

// end stops an application and waits until it has ended. That may take long, so it is done before the turn to forget it.
func (s *applicationService) end(ctx context.Context, m *runner.Member) error {
	reply, err := m.Call(ctx, func(request uint64) application.Event { return application.Stop{Request: request} })
	if err != nil {
		return failed(err)
	}
	if reply.Refused.Code != application.RefusedStopped {
		if err := refused(reply.Refused); err != nil {
			return err
		}
	}
	select {
	case <-m.Ended():
		return nil
	case <-ctx.Done():
		return failed(fmt.Errorf("waiting for the executors of application %s to end: %w", m.Key(), ctx.Err()))
	}
}
