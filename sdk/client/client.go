// Package client connects applications to a Retinue daemon.
//
// It promises that a Client may be used by many goroutines at once, that Run reports each task's end exactly once however often the connection
// breaks, and that a token never travels over a connection that others can read.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// Config says where the daemon is and who calls.
type Config struct {
	// Address is "unix:///path/to/socket", or "host:port" of a TCP listener.
	Address string
	// TokenFile holds the caller's token. A Unix socket needs none.
	TokenFile string
	// CAFile holds the certificate authority of the daemon's certificate. Without one, plain text is spoken, which is accepted for Unix sockets and
	// loopback addresses only.
	CAFile string
}

// DefaultAddress is the Unix socket of a daemon that runs as the same user: retinue/retinued.sock in $XDG_RUNTIME_DIR, or else in
// $XDG_STATE_HOME, or else in ~/.local/state.
func DefaultAddress() string {
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		if dir := os.Getenv(name); dir != "" {
			return "unix://" + filepath.Join(dir, "retinue", "retinued.sock")
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	return "unix://" + filepath.Join(home, ".local", "state", "retinue", "retinued.sock")
}

// ConfigFromEnvironment reads RETINUE_DAEMON (the address), RETINUE_CLIENT_TOKEN_FILE and RETINUE_CLIENT_CA_FILE; the address is DefaultAddress if it is not set.
func ConfigFromEnvironment() Config {
	cfg := Config{
		Address:   os.Getenv("RETINUE_DAEMON"),
		TokenFile: os.Getenv("RETINUE_CLIENT_TOKEN_FILE"),
		CAFile:    os.Getenv("RETINUE_CLIENT_CA_FILE"),
	}
	if cfg.Address == "" {
		cfg.Address = DefaultAddress()
	}
	return cfg
}

// Client is a connection to a daemon. The generated clients are there for whatever has no method of its own.
type Client struct {
	Applications apiv1.ApplicationServiceClient
	Tasks        apiv1.TaskServiceClient
	Policies     apiv1.PolicyServiceClient
	conn         *grpc.ClientConn
}

// New prepares a connection; it is made with the first call. The error says which setting is wrong.
func New(cfg Config) (*Client, error) {
	var options []grpc.DialOption
	creds, err := transport(cfg)
	if err != nil {
		return nil, err
	}
	options = append(options, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(apiv1.MaxMessage), grpc.MaxCallSendMsgSize(apiv1.MaxMessage)),
		grpc.WithConnectParams(connecting()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}))
	if cfg.TokenFile != "" {
		token, tokenErr := readToken(cfg.TokenFile)
		if tokenErr != nil {
			return nil, tokenErr
		}
		options = append(options, grpc.WithPerRPCCredentials(token))
	}
	conn, err := grpc.NewClient(cfg.Address, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Address, err)
	}
	return &Client{
		Applications: apiv1.NewApplicationServiceClient(conn), Tasks: apiv1.NewTaskServiceClient(conn),
		Policies: apiv1.NewPolicyServiceClient(conn), conn: conn,
	}, nil
}

// Wait waits until the daemon can be reached, or ctx ends. Calls fail at once where nobody listens; whoever has just started a daemon waits first.
func (c *Client) Wait(ctx context.Context) error {
	c.conn.Connect()
	for {
		state := c.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return context.Cause(ctx)
		}
		c.conn.Connect()
	}
}

// Close ends the connection and every call on it.
func (c *Client) Close() error { return c.conn.Close() }

// connecting tries again soon: the daemon is on this machine, or one that is starting.
func connecting() grpc.ConnectParams {
	again := backoff.DefaultConfig
	again.BaseDelay, again.MaxDelay = 100*time.Millisecond, 5*time.Second
	return grpc.ConnectParams{Backoff: again, MinConnectTimeout: 5 * time.Second}
}

func transport(cfg Config) (credentials.TransportCredentials, error) {
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the certificate authority: %s holds no certificate in PEM", cfg.CAFile)
		}
		return credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}), nil
	}
	if !private(cfg.Address) {
		return nil, fmt.Errorf("%s is not on this machine, and plain text would show the token to others: give the daemon's certificate authority with --ca-file", cfg.Address)
	}
	return insecure.NewCredentials(), nil
}

// private reports whether nobody else can read what goes to an address.
func private(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func readToken(file string) (bearer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return bearer(strings.TrimSpace(string(text))), nil
}

// bearer is a token that goes with every call. It has no method that prints it.
type bearer string

// GetRequestMetadata is what grpc asks for.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false because plain text is only ever spoken to this machine.
func (bearer) RequireTransportSecurity() bool { return false }

// String keeps the token out of logs.
func (bearer) String() string { return "[redacted]" }

// ErrIncomplete reports that not all tasks of a run succeeded.
var ErrIncomplete = errors.New("not all tasks succeeded")
