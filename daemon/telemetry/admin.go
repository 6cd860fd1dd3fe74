package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is something that must hold for the daemon to be ready.
type Check struct {
	Name string
	// Func returns nil if it holds, or a sentence that says what is missing.
	Func func(context.Context) error
}

// Admin serves what probes, scrapers and people look at: /livez, /readyz and /metrics. "?verbose" shows each check.
type Admin struct {
	listener net.Listener // nil: nowhere
	handler  http.Handler
}

// How long a peer, and a check, may take.
const (
	peerTimeout  = 10 * time.Second
	checkTimeout = 2 * time.Second
)

// Admin opens the configured address. Run must be called, or Close.
func (t *Telemetry) Admin(checks []Check) (*Admin, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", probe("livez", []Check{{"ping", func(context.Context) error { return nil }}}))
	mux.Handle("GET /readyz", probe("readyz", checks))
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry}))
	a := &Admin{handler: mux}
	if t.cfg.Address == "" {
		return a, nil
	}
	l, err := net.Listen("tcp", t.cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on telemetry.address %s: %w (choose another port, or stop what uses it)", t.cfg.Address, err)
	}
	a.listener = l
	return a, nil
}

// Addr returns where it listens, or nil.
func (a *Admin) Addr() net.Addr {
	if a.listener == nil {
		return nil
	}
	return a.listener.Addr()
}

// Close lets go of the address. Run does so itself.
func (a *Admin) Close() error {
	if a.listener == nil {
		return nil
	}
	if err := a.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Run serves until ctx is done and returns context.Cause(ctx).
func (a *Admin) Run(ctx context.Context) error {
	if a.listener == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	server := &http.Server{
		Handler: a, ReadTimeout: peerTimeout, WriteTimeout: peerTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	// A scrape that is under way when the daemon ends is worth nothing: it is cut off.
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", a.listener.Addr(), err)
	}
	return context.Cause(ctx)
}

// probe answers 200 if all checks hold and else 503, each check on a line of its own then, or if asked for.
func probe(name string, checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, ok := run(r.Context(), checks)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !ok:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintf(w, "%s%s check failed\n", lines, name)
		case r.URL.Query().Has("verbose"):
			_, _ = fmt.Fprintf(w, "%s%s check passed\n", lines, name)
		default:
			_, _ = fmt.Fprint(w, "ok")
		}
	})
}

// run runs the checks, one after the other, and tells how each went.
func run(ctx context.Context, checks []Check) (lines string, ok bool) {
	var text strings.Builder
	ok = true
	for _, c := range checks {
		if err := runOne(ctx, c); err != nil {
			ok = false
			_, _ = fmt.Fprintf(&text, "[-]%s failed: %v\n", c.Name, err)
		} else {
			_, _ = fmt.Fprintf(&text, "[+]%s ok\n", c.Name)
		}
	}
	return text.String(), ok
}

func runOne(ctx context.Context, c Check) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("it took longer than %v", checkTimeout))
	defer cancel()
	return c.Func(ctx)
}
