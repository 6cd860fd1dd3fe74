package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// cause is what kind of fault a module made. It is a label of metrics, so the set is small and fixed.
type cause string

// The causes.
const (
	causeStart     cause = "start"     // no instance could be made
	causeDeadline  cause = "deadline"  // it did not answer in time
	causeFuel      cause = "fuel"      // it did more than it may
	causeDepth     cause = "depth"     // its calls were nested too deep
	causeBusy      cause = "busy"      // all of its instances were at other questions
	causeTrap      cause = "trap"      // it ran into what a machine cannot do
	causeExit      cause = "exit"      // it ended itself
	causeError     cause = "error"     // it said that it cannot answer
	causeMemory    cause = "memory"    // it pointed outside of its memory
	causeOutput    cause = "output"    // it answered with too much
	causeDecision  cause = "decision"  // what it answered is no decision
	causeMissing   cause = "missing"   // it is not there
	causeCancelled cause = "cancelled" // the daemon stopped waiting: not the module's doing
)

// fault is a module's breach of the contract. It is an error, and always costs the instance.
type fault struct {
	cause cause
	err   error  // for people: what the module did, without its name
	trace string // for the log: where in the module
}

// Error completes "policy x ...".
func (f *fault) Error() string { return f.err.Error() }

// Unwrap returns what is behind it.
func (f *fault) Unwrap() error { return f.err }

// timeKey is a key of the configuration that bounds how long something takes.
type timeKey string

const (
	keyDeadline timeKey = "deadline"
	keyStart    timeKey = "startTimeout"
)

func (k timeKey) of(cfg Config) time.Duration {
	if k == keyDeadline {
		return cfg.Deadline
	}
	return cfg.StartTimeout
}

// under says which key sets the bound that the module broke.
func (f *fault) under(cfg Config, key timeKey) *fault {
	switch {
	case f == nil:
	case f.cause == causeDeadline:
		f.err = fmt.Errorf("%w (policy.%s is %v)", f.err, key, key.of(cfg))
	case f.cause == causeFuel:
		f.err = fmt.Errorf("%w (policy.fuel is %d ticks)", f.err, cfg.Fuel)
	}
	return f
}

func faultf(c cause, format string, args ...any) *fault {
	return &fault{cause: c, err: fmt.Errorf(format, args...)}
}

// faultOf makes a fault of what a call into a guest came back with. words is what the guest printed before.
func faultOf(ctx context.Context, doing string, err error, words string) *fault {
	text, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	f := &fault{trace: trace}
	var exit *sys.ExitError
	switch {
	case errors.Is(err, errFuel):
		f.cause, f.err = causeFuel, fmt.Errorf("was stopped while %s: %w", doing, errFuel)
	case errors.Is(err, errDeep):
		f.cause, f.err = causeDepth, fmt.Errorf("was stopped while %s: %w", doing, errDeep)
	case errors.Is(err, errTime), errors.Is(err, context.DeadlineExceeded):
		f.cause, f.err = causeDeadline, fmt.Errorf("was stopped while %s: %w", doing, errTime)
	case errors.Is(err, context.Canceled):
		f.cause, f.err = causeCancelled, fmt.Errorf("was stopped while %s: %w", doing, context.Cause(ctx))
	case errors.As(err, &exit):
		f.cause, f.err = causeExit, fmt.Errorf("ended itself with code %d while %s", exit.ExitCode(), doing)
	default:
		f.cause, f.err = causeTrap, fmt.Errorf("trapped while %s: %s", doing, strings.TrimPrefix(text, "wasm error: "))
	}
	if words != "" {
		f.err = fmt.Errorf("%w (it printed: %s)", f.err, words)
	}
	return f
}
