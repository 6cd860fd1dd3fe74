package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
)

// Config says what is told about the daemon, to whom.
type Config struct {
	// LogLevel is the least important level that is logged: debug, info, warn or error. It can be changed while the daemon runs.
	LogLevel string
	// LogFormat is json, for machines, or text.
	LogFormat string
	// Address is where /livez, /readyz and /metrics are served, host:port. Empty: nowhere. Nobody is asked who he is there, so it is an
	// address of this machine alone unless AllowRemote is set.
	Address string
	// AllowRemote lets Address be one that others can reach, as probes and scrapers in a cluster must.
	AllowRemote bool
	// TraceEndpoint is where traces go by OTLP over gRPC, host:port. Empty: there are none.
	TraceEndpoint string
	// TracePlainText sends traces without TLS.
	TracePlainText bool
	// TraceRatio is the part of traces that are kept, from 0 to 1. What another has decided for a trace holds.
	TraceRatio float64
	// Version is the daemon's. The program sets it, no file does.
	Version string `koanf:"-"`
}

// The log formats.
const (
	formatJSON = "json"
	formatText = "text"
)

// DefaultConfig logs as JSON from info on, serves on a port of this machine and traces nothing.
func DefaultConfig() Config {
	return Config{LogLevel: "info", LogFormat: formatJSON, Address: "127.0.0.1:9464", TraceRatio: 1}
}

// Validate returns everything that is wrong with c, joined.
func (c Config) Validate() error {
	var errs []error
	if _, err := ParseLevel(c.LogLevel); err != nil {
		errs = append(errs, fmt.Errorf("logLevel: %w", err))
	}
	if c.LogFormat != formatJSON && c.LogFormat != formatText {
		errs = append(errs, fmt.Errorf("logFormat: %q is neither json nor text", c.LogFormat))
	}
	if err := c.validateAddress(); err != nil {
		errs = append(errs, fmt.Errorf("address: %w", err))
	}
	if c.TraceEndpoint != "" {
		if _, _, err := net.SplitHostPort(c.TraceEndpoint); err != nil {
			errs = append(errs, fmt.Errorf("traceEndpoint: %q is not host:port: %w", c.TraceEndpoint, err))
		}
	}
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) { // written so that no number is wrong, too
		errs = append(errs, fmt.Errorf("traceRatio: %v is not between 0 and 1", c.TraceRatio))
	}
	return errors.Join(errs...)
}

func (c Config) validateAddress() error {
	if c.Address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		return fmt.Errorf("%q is not host:port: %w", c.Address, err)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && !c.AllowRemote {
		return fmt.Errorf("others can reach %q, and nobody is asked who he is there: choose 127.0.0.1, or set allowRemote", c.Address)
	}
	return nil
}

// ParseLevel reads a level: debug, info, warn or error, whatever the case.
func ParseLevel(text string) (slog.Level, error) {
	switch strings.ToLower(text) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("%q is none of debug, info, warn and error", text)
}

// maxLogged is how many bytes of a text are logged: what others send must not fill the disk.
const maxLogged = 8 << 10

// NewHandler returns a handler that logs to w in a format of Config.LogFormat, from a level on that may change at any time.
func NewHandler(w io.Writer, format string, level slog.Leveler) (slog.Handler, error) {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString && len(a.Value.String()) > maxLogged {
			a.Value = slog.StringValue(strings.ToValidUTF8(a.Value.String()[:maxLogged], "") + "…")
		}
		return a
	}}
	switch format {
	case formatJSON:
		return slog.NewJSONHandler(w, options), nil
	case formatText:
		return slog.NewTextHandler(w, options), nil
	}
	return nil, fmt.Errorf("preparing the log: the format %q is neither json nor text", format)
}
