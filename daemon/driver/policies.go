package driver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// maxModule bounds what a client may upload as a module; the policy host has a bound of its own on what it accepts.
const maxModule = 32 << 20

// Policies keeps modules and says which decides for which application.
type Policies interface {
	// Load checks and compiles a module aside and keeps it. Nothing changes for any application.
	Load(ctx context.Context, name string, module []byte) (policy.Module, error)
	// Try finds out whether a policy is there and takes its settings. Nothing changes for any application.
	Try(ctx context.Context, b spec.Binding) error
	// Bind lets a policy decide for an application from the next decision on, in a mode; before is the mode until then. It returns the digest
	// that it replaced.
	Bind(ctx context.Context, app runner.Key, b spec.Binding, mode, before application.Mode) (policy.Module, string, error)
	// SetDefault binds all applications that have no binding of their own.
	SetDefault(ctx context.Context, b spec.Binding) (policy.Module, string, error)
	// Rollback goes back to the generation before, and returns the mode in which that was bound.
	Rollback(ctx context.Context, app runner.Key) (policy.Module, application.Mode, string, error)
	// Bound is what decides for an application.
	Bound(app runner.Key) policy.Module
	// Forget drops an application's binding.
	Forget(app runner.Key)
	// Modules lists the modules there are, by name and digest.
	Modules() []policy.Module
}

type policyService struct {
	apiv1.UnimplementedPolicyServiceServer
	*Server
}

func policyRefused(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return failed(err)
	}
	if errors.Is(err, policy.ErrUnknown) {
		return refuse(codes.NotFound, "NO_SUCH_POLICY", "%v", err)
	}
	return refuse(codes.InvalidArgument, "POLICY_REFUSED", "%v", err)
}

// LoadPolicy takes a module in pieces.
func (s *policyService) LoadPolicy(stream apiv1.PolicyService_LoadPolicyServer) error {
	if err := everywhere(stream.Context()); err != nil {
		return err
	}
	var name string
	var module []byte
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if name == "" {
			name = msg.GetName()
		}
		if len(module)+len(msg.GetChunk()) > maxModule {
			return refuse(codes.ResourceExhausted, "MODULE_TOO_LARGE", "the module has more than %d bytes", maxModule)
		}
		module = append(module, msg.GetChunk()...)
	}
	loaded, err := s.parts.Policies.Load(stream.Context(), name, module)
	if err != nil {
		return policyRefused(err)
	}
	s.log.LogAttrs(stream.Context(), slog.LevelInfo, "policy loaded", slog.String("policy", loaded.Name),
		slog.String("digest", loaded.Digest), slog.String("by", callerOf(stream.Context()).name))
	return stream.SendAndClose(&apiv1.LoadPolicyResponse{Policy: s.policy(stream.Context(), loaded)})
}

// everywhere refuses callers that are confined to one namespace: modules are shared by all.
func everywhere(ctx context.Context) error {
	if who := callerOf(ctx); who.namespace != "*" {
		return refuse(codes.PermissionDenied, "NAMESPACE_DENIED", "%s is confined to namespace %s; this needs a token for all (*)", who.name, who.namespace)
	}
	return nil
}

// BindPolicy lets a policy decide.
func (s *policyService) BindPolicy(ctx context.Context, req *apiv1.BindPolicyRequest) (*apiv1.BindPolicyResponse, error) {
	mode, err := spec.ParseMode(req.GetMode())
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "MODE_UNKNOWN", "%v", err)
	}
	binding := spec.Binding{Policy: req.GetBinding().GetPolicy(), Settings: req.GetBinding().GetSettings()}
	if binding.Policy == "" {
		return nil, refuse(codes.InvalidArgument, "POLICY_MISSING", "no policy is named: `retinue get policies` lists those there are")
	}
	if req.GetApplication() == "" {
		return s.bindDefault(ctx, binding, mode)
	}
	m, back, err := s.turn(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	defer back()
	status, err := m.Fresh(ctx)
	if err != nil {
		return nil, failed(err)
	}
	mode = cmp.Or(mode, status.Mode)
	bound, replaced, err := s.parts.Policies.Bind(ctx, m.Key(), binding, mode, status.Mode)
	if err != nil {
		return nil, policyRefused(err)
	}
	s.bound(ctx, m, bound, mode, replaced)
	return &apiv1.BindPolicyResponse{Policy: s.policy(ctx, bound), Replaced: replaced}, nil
}

func (s *policyService) bindDefault(ctx context.Context, binding spec.Binding, mode application.Mode) (*apiv1.BindPolicyResponse, error) {
	if err := everywhere(ctx); err != nil {
		return nil, err
	}
	if mode != 0 {
		return nil, refuse(codes.InvalidArgument, "MODE_WITHOUT_APPLICATION", "a mode belongs to one application: name it")
	}
	bound, replaced, err := s.parts.Policies.SetDefault(ctx, binding)
	if err != nil {
		return nil, policyRefused(err)
	}
	for _, m := range s.parts.Applications.All("") {
		s.tellPolicy(m)
	}
	return &apiv1.BindPolicyResponse{Policy: s.policy(ctx, bound), Replaced: replaced}, nil
}

// RollbackPolicy goes back to the generation before.
func (s *policyService) RollbackPolicy(ctx context.Context, req *apiv1.RollbackPolicyRequest) (*apiv1.RollbackPolicyResponse, error) {
	m, back, err := s.turn(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	defer back()
	bound, mode, replaced, err := s.parts.Policies.Rollback(ctx, m.Key())
	if err != nil {
		return nil, refuse(codes.FailedPrecondition, "NOTHING_BEFORE", "%v", err)
	}
	s.bound(ctx, m, bound, mode, replaced)
	return &apiv1.RollbackPolicyResponse{Policy: s.policy(ctx, bound), Replaced: replaced}, nil
}

// bound tells an application what decides for it, and the log who wanted that.
func (s *policyService) bound(ctx context.Context, m *runner.Member, module policy.Module, mode application.Mode, replaced string) {
	m.Post(application.PolicyBound{Policy: module.Name, By: module.Digest, Mode: mode})
	s.log.LogAttrs(ctx, slog.LevelInfo, "policy bound", slog.String("application", m.Key().String()), slog.String("policy", module.Name),
		slog.String("digest", module.Digest), slog.String("mode", spec.ModeName(mode)), slog.String("replaced", replaced),
		slog.String("by", callerOf(ctx).name))
}

// tellPolicy tells an application which policy decides for it.
func (s *Server) tellPolicy(m *runner.Member) {
	module := s.parts.Policies.Bound(m.Key())
	m.Post(application.PolicyBound{Policy: module.Name, By: module.Digest})
}

// ListPolicies lists the modules there are, and for which applications each decides.
func (s *policyService) ListPolicies(ctx context.Context, _ *apiv1.ListPoliciesRequest) (*apiv1.ListPoliciesResponse, error) {
	out := &apiv1.ListPoliciesResponse{}
	for _, module := range s.parts.Policies.Modules() {
		out.Policies = append(out.Policies, s.policy(ctx, module))
	}
	return out, nil
}

func (s *policyService) policy(ctx context.Context, m policy.Module) *apiv1.Policy {
	out := &apiv1.Policy{
		Name: m.Name, Digest: m.Digest, Version: m.Version, SizeBytes: uint64(m.Size), Shipped: m.Shipped, Description: m.Description,
	}
	for _, hook := range m.Hooks {
		out.Hooks = append(out.Hooks, hook.String())
	}
	for _, app := range s.parts.Applications.All("") {
		if callerOf(ctx).sees(app.Key().Namespace) && s.parts.Policies.Bound(app.Key()).Digest == m.Digest {
			out.Applications = append(out.Applications, app.Key().String())
		}
	}
	return out
}
