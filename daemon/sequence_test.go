package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary records what happened, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) part(name string) part {
	return part{name, func(ctx context.Context) error {
		<-ctx.Done()
		d.add("stop " + name)
		return context.Cause(ctx)
	}}
}

// Parts are told to stop in the reverse order of their start, each after the one before has ended.
func TestPartsStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		slow := part{"slow", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second) // of the bubble
			d.add("stop slow")
			return nil
		}}
		s := sequence{parts: []part{d.part("a"), d.part("b"), slow, d.part("c")}, patience: time.Minute, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := s.Run(ctx); err != nil {
			t.Errorf("a stop that was asked for gave %v", err)
		}
		if want := []string{"stop c", "stop slow", "stop b", "stop a"}; !slices.Equal(d.lines, want) {
			t.Errorf("got %v, want %v", d.lines, want)
		}
	})
}

// A part that fails, at any time, stops all others in order, and the daemon says which it was.
func TestFailureOfOnePartStopsAll(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		var d diary
		failing := part{"failing", func(context.Context) error { time.Sleep(time.Second); return broken }}
		s := sequence{parts: []part{d.part("a"), failing, d.part("c")}, patience: time.Minute, log: slog.New(slog.DiscardHandler)}
		err := s.Run(t.Context())
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "failing: ") {
			t.Errorf("got %v", err)
		}
		if want := []string{"stop c", "stop a"}; !slices.Equal(d.lines, want) {
			t.Errorf("got %v, want %v", d.lines, want)
		}
	})
}

// A part that fails while stopping, or does not stop at all, keeps none of the others from being stopped.
func TestStopSurvivesPartsThatFailToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		release := make(chan struct{})
		stuck := part{"stuck", func(context.Context) error { <-release; return nil }}
		failing := part{"failing", func(ctx context.Context) error { <-ctx.Done(); d.add("stop failing"); return errors.New("broken") }}
		s := sequence{parts: []part{d.part("a"), stuck, failing, d.part("d")}, patience: time.Minute, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := s.Run(ctx); err != nil {
			t.Errorf("got %v", err)
		}
		if want := []string{"stop d", "stop failing", "stop a"}; !slices.Equal(d.lines, want) {
			t.Errorf("got %v, want %v", d.lines, want)
		}
		close(release)
	})
}

// A part that ends without an error before it was told to is a failure: nothing of the daemon may go missing unnoticed.
func TestPartThatEndsEarlyIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sequence{parts: []part{{"quitter", func(context.Context) error { return nil }}}, patience: time.Minute, log: slog.New(slog.DiscardHandler)}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "quitter") {
			t.Errorf("got %v", err)
		}
	})
}
