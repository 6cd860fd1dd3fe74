// Package driver is the daemon's gRPC server: executors hold their sessions here, clients make their calls.
//
// It promises:
//
//   - every method has a permission, and one without is refused;
//   - an executor is who its credential says, and a credential is good for one executor only;
//   - every stream has bounded queues; a peer that does not read is cut off, and nobody waits for it;
//   - what a caller may not see looks the same as what is not there.
package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// Config bounds the server. The bounds follow the advice of grpc-go's security notes: small windows, few streams, early cuts.
type Config struct {
	Connections       int           // most open connections
	HandshakeTimeout  time.Duration // from accept to the end of the handshake
	RegisterTimeout   time.Duration // from the opening of an executor's stream to its first message
	StallTimeout      time.Duration // a peer that takes no message for longer is cut off
	HeartbeatInterval time.Duration // asked of executors
	Lease             time.Duration // how long executors go on without the daemon
	OutputLimit       uint64        // bytes of a task's standard output that come back
	SessionBacklog    int           // messages' worth of effects that may wait for one executor
	Reflection        bool          // serve gRPC reflection
}

// DefaultConfig returns bounds that suit a thousand executors.
func DefaultConfig() Config {
	return Config{
		Connections: 20_000, HandshakeTimeout: 10 * time.Second, RegisterTimeout: 5 * time.Second,
		StallTimeout: 10 * time.Second, HeartbeatInterval: 10 * time.Second, Lease: 2 * time.Minute,
		OutputLimit: 256 << 10, SessionBacklog: 1 << 16,
	}
}

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, ok bool, value any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %v is not positive", name, value))
		}
	}
	positive("connections", c.Connections > 0, c.Connections)
	positive("handshakeTimeout", c.HandshakeTimeout > 0, c.HandshakeTimeout)
	positive("registerTimeout", c.RegisterTimeout > 0, c.RegisterTimeout)
	positive("stallTimeout", c.StallTimeout > 0, c.StallTimeout)
	positive("heartbeatInterval", c.HeartbeatInterval > 0, c.HeartbeatInterval)
	positive("sessionBacklog", c.SessionBacklog > 0, c.SessionBacklog)
	if c.OutputLimit > apiv1.MaxMessage/2 {
		errs = append(errs, fmt.Errorf("outputLimit: %d bytes is more than half of a message (%d)", c.OutputLimit, apiv1.MaxMessage))
	}
	if c.Lease < 3*c.HeartbeatInterval {
		errs = append(errs, fmt.Errorf("lease: %v is shorter than three heartbeats (%v)", c.Lease, c.HeartbeatInterval))
	}
	return errors.Join(errs...)
}

// Parts is what the server works with.
type Parts struct {
	Applications *runner.Set
	Policies     Policies
	Defaults     spec.Defaults
	Tokens       *Tokens       // of clients; never nil, possibly empty
	Credentials  *ExecutorKeys // of executors
	Logs         Logs          // of executors' containers
	Log          *slog.Logger
	Meter        metric.MeterProvider
	Tracer       trace.TracerProvider
}

// Server serves executors and clients.
type Server struct {
	cfg      Config
	parts    Parts
	log      *slog.Logger
	health   *health.Server
	sessions *sessions
	turns    *turns
	grpc     []*grpc.Server
	serving  chan struct{} // closed when Run serves
	stopping chan struct{} // closed when Run begins to stop
}

// Listener is a socket and how peers on it are told apart.
type Listener struct {
	net.Listener
	Trusted bool        // everybody who can open it is an administrator: a Unix socket of mode 0600
	TLS     *tls.Config // nil: plain text
}

// New makes a server. Nothing is served before Run.
func New(cfg Config, parts Parts) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, parts: parts, log: parts.Log, turns: newTurns(), health: health.NewServer(), serving: make(chan struct{}), stopping: make(chan struct{})}
	s.sessions = newSessions()
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

// Run serves on the listeners until ctx is done, then tells executors to come back later, lets calls end for at most grace, and returns
// context.Cause(ctx). It closes the listeners.
func (s *Server) Run(ctx context.Context, listeners []Listener, grace time.Duration) error {
	failed := make(chan error, len(listeners))
	var serving sync.WaitGroup
	for _, l := range listeners {
		server := s.newGRPC(l)
		s.grpc = append(s.grpc, server)
		serving.Go(func() {
			if err := server.Serve(netutil.LimitListener(l, s.cfg.Connections)); err != nil {
				failed <- fmt.Errorf("serving %s: %w", l.Addr(), err)
			}
		})
	}
	s.health.Resume()
	s.setServing(healthpb.HealthCheckResponse_SERVING)
	close(s.serving)
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case err = <-failed:
	}
	s.stop(grace)
	serving.Wait()
	return err
}

// Ready reports why the server does not serve, or nil.
func (s *Server) Ready() error {
	select {
	case <-s.stopping:
		return errors.New("the daemon stops")
	case <-s.serving:
		return nil
	default:
		return errors.New("the daemon starts")
	}
}

func (s *Server) setServing(status healthpb.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	for _, service := range []string{
		apiv1.ExecutorService_ServiceDesc.ServiceName, apiv1.ApplicationService_ServiceDesc.ServiceName,
		apiv1.TaskService_ServiceDesc.ServiceName, apiv1.PolicyService_ServiceDesc.ServiceName,
	} {
		s.health.SetServingStatus(service, status)
	}
}

// stop takes the order of a good shutdown: health red, executors told to come back, calls ended, and whatever is left cut.
func (s *Server) stop(grace time.Duration) {
	s.health.Shutdown()
	close(s.stopping)
	s.sessions.reconnectAll("the daemon restarts")
	cut := time.AfterFunc(grace, func() {
		for _, server := range s.grpc {
			server.Stop()
		}
	})
	defer cut.Stop()
	for _, server := range s.grpc {
		server.GracefulStop()
	}
}

// maxIdle is how long a connection may be open without a call: whoever only answers pings keeps nobody else out. Executors always have one.
const maxIdle = 5 * time.Minute

func (s *Server) newGRPC(l Listener) *grpc.Server {
	creds := insecure.NewCredentials()
	if l.TLS != nil {
		creds = credentials.NewTLS(l.TLS)
	}
	gate := &gate{tokens: s.parts.Tokens, trusted: l.Trusted}
	server := grpc.NewServer(
		grpc.Creds(creds),
		grpc.MaxRecvMsgSize(apiv1.MaxMessage), grpc.MaxSendMsgSize(apiv1.MaxMessage),
		grpc.MaxConcurrentStreams(16), grpc.MaxHeaderListSize(16<<10), grpc.ConnectionTimeout(s.cfg.HandshakeTimeout),
		grpc.InitialWindowSize(256<<10), grpc.InitialConnWindowSize(1<<20),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(gate.tap), grpc.UnaryInterceptor(gate.unary), grpc.StreamInterceptor(gate.stream),
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithMeterProvider(s.parts.Meter), otelgrpc.WithTracerProvider(s.parts.Tracer),
			otelgrpc.WithFilter(filters.Not(filters.FullMethodName(apiv1.ExecutorService_Attach_FullMethodName))))), // a span of hours helps nobody
	)
	apiv1.RegisterExecutorServiceServer(server, &executorService{Server: s})
	apiv1.RegisterApplicationServiceServer(server, &applicationService{Server: s})
	apiv1.RegisterTaskServiceServer(server, &taskService{Server: s})
	apiv1.RegisterPolicyServiceServer(server, &policyService{Server: s})
	healthpb.RegisterHealthServer(server, s.health)
	if s.cfg.Reflection {
		reflection.Register(server)
	}
	return server
}
