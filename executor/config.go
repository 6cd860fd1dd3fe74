package executor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Secret is text that must not be seen. Printed, logged or marshalled it is [redacted].
type Secret string

// String hides the secret.
func (Secret) String() string { return "[redacted]" }

// GoString hides the secret.
func (Secret) GoString() string { return "[redacted]" }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// Config says who the executor is and where its daemon is.
type Config struct {
	Address     string // of the daemon: host:port, or unix:///path
	Application string
	Namespace   string
	Executor    uint64 // number, from 1
	Token       Secret // proves that this is that executor
	PodName     string
	PodUID      string // empty if unknown
	Version     string // of the program, told to the daemon
	Slots       uint32 // tasks that run at once

	// CAFile holds the certificates, in PEM, of those who may vouch for the daemon. Without it the system's are taken; only on a loopback
	// address or a Unix socket is there no TLS then.
	CAFile string
	// WorkDir is where each attempt gets a folder of its own; empty: a temporary one, removed at the end.
	WorkDir string
	// Environ is what every task's environment begins with, without variables whose names begin with RETINUE_TOKEN; nil: the process's own.
	Environ []string
	// Lease is how long the executor goes on without its daemon, until the daemon says how long.
	Lease time.Duration
	// LeaveGrace is how long tasks may go on after the executor was told to end. With KillGrace and two seconds for the last reports it must
	// fit in the grace period of the pod.
	LeaveGrace time.Duration
	// KillGrace is between asking and forcing a task to end when the task does not say.
	KillGrace time.Duration
	// Alone says that this process does nothing but be the executor: when no task runs, any process left below it may be killed.
	Alone bool
}

// DefaultConfig returns what suits a pod with the usual grace period of 30 s. Who and where must be filled in.
func DefaultConfig() Config {
	return Config{Slots: 1, Lease: 2 * time.Minute, LeaveGrace: 20 * time.Second, KillGrace: 5 * time.Second}
}

// maxSlots is far beyond what a machine can run.
const maxSlots = 4096

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil && c.socket() == "" {
		errs = append(errs, fmt.Errorf("address: %q is neither host:port nor unix:///path", c.Address))
	}
	check(c.Application != "", "application: is empty")
	check(c.Namespace != "", "namespace: is empty")
	check(c.Executor > 0, "executor: its number is missing; they begin at 1")
	check(c.Token != "", "token: is empty")
	check(!strings.ContainsFunc(string(c.Token), func(r rune) bool { return r <= ' ' || r > '~' }), "token: has a character that cannot be in a header")
	check(c.Slots > 0 && c.Slots <= maxSlots, "slots: %d is not between 1 and %d", c.Slots, maxSlots)
	check(c.Lease > 0, "lease: %v is not positive", c.Lease)
	check(c.LeaveGrace >= 0, "leaveGrace: %v is negative", c.LeaveGrace)
	check(c.KillGrace >= 0, "killGrace: %v is negative", c.KillGrace)
	if c.CAFile != "" {
		if _, err := os.Stat(c.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("caFile: %w", err))
		}
	}
	return errors.Join(errs...)
}

// socket returns the path of the Unix socket that Address names, or nothing.
func (c Config) socket() string {
	path, ok := strings.CutPrefix(c.Address, "unix://")
	if !ok || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// private reports whether nobody else can be on the way to the daemon.
func (c Config) private() bool {
	if c.socket() != "" {
		return true
	}
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// environ returns what every task's environment begins with.
func (c Config) environ() []string {
	base := c.Environ
	if base == nil {
		base = os.Environ()
	}
	var out []string
	for _, v := range base {
		if !strings.HasPrefix(v, "RETINUE_TOKEN") {
			out = append(out, v)
		}
	}
	return out
}
