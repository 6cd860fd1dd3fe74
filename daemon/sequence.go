package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// part is something that runs as long as the daemon does.
type part struct {
	name string
	run  func(context.Context) error
}

// errStopped is the cause with which parts are told to end.
var errStopped = errors.New("the daemon stops")

// sequence runs parts: started in order, stopped in the reverse order, each having ended before the one before it is told to. The first part
// that fails stops all. All together have patience to end; a part that does not end in its share of it is left behind, with a log record, and the
// others still get their turn.
type sequence struct {
	parts    []part
	patience time.Duration // from the first to the last
	log      *slog.Logger
}

// share is the part of the time left that one part may use up, so that a part that hangs leaves some to the others.
func share(left time.Duration) time.Duration { return left / 4 * 3 }

// ending is how a part ended.
type ending struct {
	part string
	err  error
}

// running is a part that was started.
type running struct {
	name   string
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// Run returns nil when ctx ended, and otherwise why the first part failed; and the names of the parts that it left behind.
func (s *sequence) Run(ctx context.Context) (left []string, err error) {
	endings := make(chan ending, len(s.parts))
	started := make([]running, 0, len(s.parts))
	for _, p := range s.parts {
		// Parts do not see ctx end: they are told one by one.
		partCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		r := running{name: p.name, cancel: cancel, ended: make(chan struct{})}
		started = append(started, r)
		go func() {
			defer close(r.ended)
			endings <- ending{part: p.name, err: p.run(partCtx)}
		}()
	}
	select {
	case <-ctx.Done():
	case e := <-endings:
		err = e.failure()
	}
	return s.stop(ctx, started), err
}

// failure is what an ending before its time means: even a part that returned without an error has failed, since nobody told it to end.
func (e ending) failure() error {
	if e.err == nil {
		return fmt.Errorf("%s: ended before its time", e.part)
	}
	return fmt.Errorf("%s: %w", e.part, e.err)
}

// stop tells the parts to end, the last one first, and returns the names of those that have not.
func (s *sequence) stop(ctx context.Context, started []running) (left []string) {
	deadline := time.Now().Add(s.patience)
	for _, r := range slices.Backward(started) {
		r.cancel(errStopped)
		patience := share(time.Until(deadline))
		late := time.NewTimer(patience)
		select {
		case <-r.ended:
		case <-late.C:
			left = append(left, r.name)
			s.log.LogAttrs(ctx, slog.LevelError, "part did not end in time and is left behind",
				slog.String("part", r.name), slog.Duration("patience", patience))
		}
		late.Stop()
	}
	return left
}
