package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// that fails stops all. A part that does not end within patience is left behind, with a log record, and the others still get their turn.
type sequence struct {
	parts    []part
	patience time.Duration
	log      *slog.Logger
}

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

// Run returns nil when ctx ended, and otherwise why the first part failed.
func (s *sequence) Run(ctx context.Context) error {
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
	var err error
	select {
	case <-ctx.Done():
	case e := <-endings:
		err = e.failure()
	}
	s.stop(started)
	return err
}

// failure is what an ending before its time means: even a part that returned without an error has failed, since nobody told it to end.
func (e ending) failure() error {
	if e.err == nil {
		return fmt.Errorf("%s: ended before its time", e.part)
	}
	return fmt.Errorf("%s: %w", e.part, e.err)
}

func (s *sequence) stop(started []running) {
	for i := len(started) - 1; i >= 0; i-- {
		r := started[i]
		r.cancel(errStopped)
		late := time.NewTimer(s.patience)
		select {
		case <-r.ended:
		case <-late.C:
			s.log.LogAttrs(context.Background(), slog.LevelWarn, "part did not end in time and is left behind",
				slog.String("part", r.name), slog.Duration("patience", s.patience))
		}
		late.Stop()
	}
}
