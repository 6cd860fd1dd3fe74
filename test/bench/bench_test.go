package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/application"
)

// What is held is ok up to its floor and short beyond it; what is not held has no verdict.
func TestVerdict(t *testing.T) {
	for want, r := range map[string]row{
		"ok":    measured("at the floor", 20, microseconds).atMost(20),
		"short": measured("above the floor", 20.1, microseconds).atMost(20),
		"-":     measured("free", 1e9, microseconds),
	} {
		if got := r.verdict(); got != want {
			t.Errorf("%s: %q, want %q", r.name, got, want)
		}
	}
	if got := measured("no writes", 1, count).atMost(0).verdict(); got != "short" {
		t.Errorf("one where none is accepted: %q", got)
	}
}

func TestQuantity(t *testing.T) {
	for want, got := range map[string]string{
		"0.123 µs": quantity(0.1234, microseconds), "3.46 ms": quantity(3.456, milliseconds), "34.6x": quantity(34.56, times),
		"3456/s": quantity(3456, perSecond), "2 ms": quantity(2, milliseconds), "0": quantity(0, count), "1%": quantity(1, percent),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	s := samples{4, 1, 3, 2}
	for part, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := s.quantile(part); got != want {
			t.Errorf("quantile %v is %v, want %v", part, got, want)
		}
	}
	if got := (samples{}).median(); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

// A process may be called anything; the numbers behind its name are found all the same.
func TestParseStat(t *testing.T) {
	const numbers = " S 1 2 3 4 5 6 7 8 9 10 30 12 0 0"
	for _, name := range []string{"retinued", "a b", "a) 9 9 (b", ")"} {
		got, err := parseStat([]byte("7 (" + name + ")" + numbers))
		if err != nil || got != 42 {
			t.Errorf("%q: %d ticks, %v; want 42", name, got, err)
		}
	}
	for _, line := range []string{"", "7 (x", "7 (x) S 1", "7 (x) S 1 2 3 4 5 6 7 8 9 10 a 12 0"} {
		if got, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q gives %d ticks", line, got)
		}
	}
}

// A process that works has used time.
func TestCPUTimeGrows(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after == before; { // ends as soon as the kernel counts a tick, and hangs if it never does
		if after, err = cpuTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
}

// An executor that ends is replaced, and the core hears of it in the order of a pod's life; the fleet stays as large as it was.
func TestCrowdReplacesWhoEnds(t *testing.T) {
	c, err := newCrowd(10)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var kinds []string
		err := c.turn(func(kind string, ev application.Event) {
			kinds = append(kinds, kind)
			c.tell(ev)
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"unchanged", "ended", "gone", "unchanged", "pending", "running"}, kinds); diff != "" {
			t.Errorf("events (-want +got)\n%s", diff)
		}
	}
	counts := c.app.Status(c.now).Profiles[0]
	if counts.Counts.Registered != 10 || counts.Created != 13 || len(c.alive) != 10 {
		t.Errorf("%d registered, %d created, %d alive; want 10, 13, 10", counts.Counts.Registered, counts.Created, len(c.alive))
	}
}

// As long as tasks wait, each that ends makes room for the next.
func TestCrowdWorks(t *testing.T) {
	c, err := newCrowd(4)
	if err != nil {
		t.Fatal(err)
	}
	c.submit(10)
	for range 10 {
		if _, err := c.report(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.report(); err == nil {
		t.Error("an eleventh task was launched")
	}
	if done := c.app.Status(c.now).Tasks.Succeeded; done != 10 {
		t.Errorf("%d tasks succeeded, want 10", done)
	}
}

// Only what is asked for runs; each of its numbers is in the table.
func TestRunPicksByName(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-run", "^core$"}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 8 {
		t.Errorf("%d lines, want a head and 7 numbers:\n%s", len(lines), &out)
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "core: ") {
			t.Errorf("line %q is of another bench", line)
		}
	}
}

// What cannot run says why, and what is stopped stops.
func TestRunFails(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-run", "("}, &out); err == nil || !strings.Contains(err.Error(), "-run") {
		t.Errorf("a broken pattern: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := run(stopped, []string{"-run", "core"}, &out); err == nil {
		t.Error("a run that was stopped ended well")
	}
	if err := beLight(t.Context(), func(name string) string { return map[string]string{"RETINUE_EXECUTOR_ID": "x"}[name] }); err == nil {
		t.Error("an executor without a number started")
	}
}
