package driver

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

type applicationService struct {
	apiv1.UnimplementedApplicationServiceServer
	*Server
}

// namespace is the one that a caller means. One that is confined and names none means its own.
func (s *Server) namespace(ctx context.Context, named string) string {
	who := callerOf(ctx)
	switch {
	case named != "":
		return named
	case who.namespace != "*":
		return who.namespace
	default:
		return s.parts.Defaults.Namespace
	}
}

// find returns an application that the caller may see.
func (s *Server) find(ctx context.Context, namespace, id string) (*runner.Member, error) {
	if id == "" {
		return nil, refuse(codes.InvalidArgument, "APPLICATION_MISSING", "the request names no application")
	}
	key := runner.Key{Namespace: s.namespace(ctx, namespace), ID: id}
	if !callerOf(ctx).sees(key.Namespace) {
		return nil, notFound(key)
	}
	m, err := s.parts.Applications.Find(key)
	if err != nil {
		return nil, notFound(key)
	}
	return m, nil
}

// GetApplication returns one application.
func (s *applicationService) GetApplication(ctx context.Context, req *apiv1.GetApplicationRequest) (*apiv1.GetApplicationResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	app, err := s.fresh(ctx, m)
	if err != nil {
		return nil, err
	}
	return &apiv1.GetApplicationResponse{Application: app}, nil
}

// within refuses a namespace that the caller may not see. No namespace stands for all that it may see.
func within(ctx context.Context, namespace string) error {
	if who := callerOf(ctx); namespace != "" && !who.sees(namespace) {
		return refuse(codes.PermissionDenied, "NAMESPACE_DENIED", "%s may not use namespace %s", who.name, namespace)
	}
	return nil
}

// visible lists the applications that the caller may see.
func (s *applicationService) visible(ctx context.Context, namespace, id string) []*runner.Member {
	var out []*runner.Member
	for _, m := range s.parts.Applications.All(namespace) {
		if callerOf(ctx).sees(m.Key().Namespace) && (id == "" || id == m.Key().ID) {
			out = append(out, m)
		}
	}
	return out
}

// ListApplications returns a page of the applications that the caller may see.
func (s *applicationService) ListApplications(ctx context.Context, req *apiv1.ListApplicationsRequest) (*apiv1.ListApplicationsResponse, error) {
	if err := within(ctx, req.GetNamespace()); err != nil {
		return nil, err
	}
	token, err := pageItem(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &apiv1.ListApplicationsResponse{}
	p := page{left: pageSize(req.GetPageSize())}
	var last string
	for _, m := range s.visible(ctx, req.GetNamespace(), "") {
		if !follows(m.Key(), token) {
			continue
		}
		status, err := m.Fresh(ctx)
		if errors.Is(err, runner.ErrClosed) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, failed(err)
		}
		app := s.application(m, status, outline(m.Definition().Source))
		if !p.add(around(app)) {
			out.NextPageToken = pageAfter(last)
			break
		}
		out.Applications, last = append(out.Applications, app), m.Key().String()
	}
	return out, nil
}

// follows reports whether key comes after the one that was written as item, in the order of lists.
func follows(key runner.Key, item string) bool {
	namespace, id, _ := strings.Cut(item, "/")
	return cmp.Or(cmp.Compare(key.Namespace, namespace), cmp.Compare(key.ID, id)) > 0
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
	if err = s.ask(ctx, m, func(request uint64) application.Event {
		return application.SetTargets{Request: request, Targets: targets}
	}); err != nil {
		return nil, err
	}
	app, err := s.fresh(ctx, m)
	if err != nil {
		return nil, err
	}
	return &apiv1.ScaleApplicationResponse{Application: app}, nil
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
