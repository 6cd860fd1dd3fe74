package driver

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// permission is what a caller needs for a method.
type permission uint8

const (
	anybody  permission = iota + 1 // no credential at all
	executor                       // a credential of an executor; the method checks whose
	view
	submit
	admin
)

// permissions names every method that is served. A method that is not in it is refused, so that a new one cannot be open by mistake.
var permissions = map[string]permission{
	healthpb.Health_Check_FullMethodName: anybody,
	healthpb.Health_Watch_FullMethodName: anybody,
	healthpb.Health_List_FullMethodName:  anybody,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      view,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": view,

	apiv1.ExecutorService_Attach_FullMethodName: executor,

	apiv1.ApplicationService_ApplyApplication_FullMethodName:  admin,
	apiv1.ApplicationService_GetApplication_FullMethodName:    view,
	apiv1.ApplicationService_ListApplications_FullMethodName:  view,
	apiv1.ApplicationService_WatchApplications_FullMethodName: view,
	apiv1.ApplicationService_ScaleApplication_FullMethodName:  admin,
	apiv1.ApplicationService_StopApplication_FullMethodName:   admin,
	apiv1.ApplicationService_DeleteApplication_FullMethodName: admin,
	apiv1.ApplicationService_ListExecutors_FullMethodName:     view,
	apiv1.ApplicationService_ReleaseExecutors_FullMethodName:  admin,
	apiv1.ApplicationService_ReadExecutorLog_FullMethodName:   view,

	apiv1.TaskService_SubmitTasks_FullMethodName: submit,
	apiv1.TaskService_WatchTasks_FullMethodName:  view,
	apiv1.TaskService_ListTasks_FullMethodName:   view,
	apiv1.TaskService_CancelTasks_FullMethodName: submit,

	apiv1.PolicyService_LoadPolicy_FullMethodName:     admin,
	apiv1.PolicyService_BindPolicy_FullMethodName:     admin,
	apiv1.PolicyService_RollbackPolicy_FullMethodName: admin,
	apiv1.PolicyService_ListPolicies_FullMethodName:   view,
}

// caller is who makes a call, as far as authentication found out.
type caller struct {
	name      string
	role      permission // view, submit or admin
	namespace string     // the only one it may see; "*" for all
}

// sees reports whether the caller may know of anything in a namespace.
func (c caller) sees(namespace string) bool { return c.namespace == "*" || c.namespace == namespace }

type callerKey struct{}

// callerOf returns who makes the call. The gate has put it there for every method that needs more than anybody.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// gate lets calls in.
type gate struct {
	tokens  *Tokens
	trusted bool
}

func (g *gate) admit(ctx context.Context, method string) (context.Context, error) {
	needed, known := permissions[method]
	switch {
	case !known:
		return nil, refuse(codes.PermissionDenied, "METHOD_UNKNOWN", "method %s has no permission and is refused", method)
	case needed == anybody, needed == executor:
		return ctx, nil
	}
	who, err := g.caller(ctx)
	if err != nil {
		return nil, err
	}
	if who.role < needed {
		return nil, refuse(codes.PermissionDenied, "ROLE_TOO_LOW", "%s has role %s and %s needs role %s: use another token",
			who.name, roleNames[who.role], method[strings.LastIndexByte(method, '/')+1:], roleNames[needed])
	}
	return context.WithValue(ctx, callerKey{}, who), nil
}

func (g *gate) caller(ctx context.Context) (caller, error) {
	if g.trusted {
		return caller{name: "local administrator", role: admin, namespace: "*"}, nil
	}
	token := bearer(ctx)
	if token == "" {
		return caller{}, refuse(codes.Unauthenticated, "TOKEN_MISSING", "the call from %s carries no token: give one with --token-file, or use the Unix socket on the daemon's machine", remote(ctx))
	}
	who, ok := g.tokens.find(token)
	if !ok {
		return caller{}, refuse(codes.Unauthenticated, "TOKEN_UNKNOWN", "the token of the call from %s is not known", remote(ctx))
	}
	return who, nil
}

// tap refuses a call by its first bytes, so that what a stranger sends is not even read. Methods that nobody serves are left to grpc, and those
// that have no permission to the interceptors.
func (g *gate) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	if permissions[call.FullMethodName] == 0 {
		return ctx, nil
	}
	_, err := g.admit(ctx, call.FullMethodName)
	return ctx, err
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := g.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (g *gate) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := g.admit(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return handler(srv, &admittedStream{ServerStream: stream, ctx: ctx})
}

// admittedStream is a stream whose context knows the caller.
type admittedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // grpc gives interceptors no other way to pass a stream's context on
}

func (s *admittedStream) Context() context.Context { return s.ctx }

// bearer returns the token that a call carries, or nothing.
func bearer(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return ""
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	if !ok {
		return ""
	}
	return token
}

func remote(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr.String() != "" {
		return p.Addr.String()
	}
	return "a local socket"
}
