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
		if left, err := s.Run(ctx); err != nil || left != nil {
			t.Errorf("a stop that was asked for gave %v and left %v", err, left)
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
		_, err := s.Run(t.Context())
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
		if left, err := s.Run(ctx); err != nil || !slices.Equal(left, []string{"stuck"}) {
			t.Errorf("got %v, left %v", err, left)
		}
		if want := []string{"stop d", "stop failing", "stop a"}; !slices.Equal(d.lines, want) {
			t.Errorf("got %v, want %v", d.lines, want)
		}
		close(release)
	})
}

// However many parts hang, the stop takes no longer than it may, and a part that is merely slow is given time.
func TestPatienceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		const patience = 20 * time.Second
		slow := part{"slow", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(patience / 8) // of the bubble
			d.add("stop slow")
			return nil
		}}
		release := make(chan struct{})
		s := sequence{patience: patience, log: slog.New(slog.DiscardHandler)}
		var stuck []string
		for _, name := range []string{"h", "g", "f", "e", "d", "c", "b"} {
			s.parts = append(s.parts, part{name, func(context.Context) error { <-release; return nil }})
			stuck = append(stuck, name)
		}
		s.parts = append(s.parts, slow)
		slices.Reverse(stuck)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		left, err := s.Run(ctx)
		if took := time.Since(began); took > patience {
			t.Errorf("the stop took %v, longer than %v", took, patience)
		}
		if err != nil || !slices.Equal(left, stuck) || !slices.Equal(d.lines, []string{"stop slow"}) {
			t.Errorf("got %v, left %v, diary %v", err, left, d.lines)
		}
		close(release)
	})
}

// A part that ends without an error before it was told to is a failure: nothing of the daemon may go missing unnoticed.
func TestPartThatEndsEarlyIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sequence{parts: []part{{"quitter", func(context.Context) error { return nil }}}, patience: time.Minute, log: slog.New(slog.DiscardHandler)}
		if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "quitter") {
			t.Errorf("got %v", err)
		}
	})
}
