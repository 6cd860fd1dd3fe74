package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

const (
	queued    = apiv1.TaskState_TASK_STATE_QUEUED
	running   = apiv1.TaskState_TASK_STATE_RUNNING
	succeeded = apiv1.TaskState_TASK_STATE_SUCCEEDED
	failed    = apiv1.TaskState_TASK_STATE_FAILED
)

func seen(g *progress, state apiv1.TaskState, keys ...string) {
	for _, key := range keys {
		g.see(&apiv1.Task{Key: key, State: state})
	}
}

// of is an application with such profiles.
func of(profiles ...*apiv1.ProfileStatus) *apiv1.Application {
	return &apiv1.Application{Status: &apiv1.ApplicationStatus{Profiles: profiles}}
}

// The line counts each task once, by its newest state, and foretells the end from the pace so far.
func TestProgressLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newProgress(&bytes.Buffer{}, 10, true)
		if got, want := g.line(), "[..............................] 0/10, 0 running, 0 failed"; got != want {
			t.Errorf("at the beginning %q, want %q", got, want)
		}
		seen(g, queued, "a", "b", "c", "d", "e")
		seen(g, running, "a", "b", "c", "d")
		seen(g, succeeded, "a", "b")
		seen(g, succeeded, "b") // again, as after a reconnection
		seen(g, failed, "c")
		g.application(of(&apiv1.ProfileStatus{Registered: 2, Busy: 1}, &apiv1.ProfileStatus{Registered: 3, Busy: 2}))
		time.Sleep(time.Second)
		if got, want := g.line(), "[#########.....................] 3/10, 1 running, 1 failed, 3/s, 2s left, 5 executors (3 busy)"; got != want {
			t.Errorf("in the middle %q, want %q", got, want)
		}
		if g.unsuccessful() != 1 {
			t.Errorf("%d did not succeed, want 1", g.unsuccessful())
		}
	})
}

// At the end nobody is busy, whatever was seen last, and the executors that were there are counted in good English.
func TestProgressAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		g := newProgress(out, 2, false)
		time.Sleep(drawFrom)
		g.application(of(&apiv1.ProfileStatus{Registered: 1, Busy: 1}))
		time.Sleep(time.Second - drawFrom)
		seen(g, succeeded, "a", "b")
		g.done()
		g.done() // says nothing new
		want := "[..............................] 0/2, 0 running, 0 failed, 1 executor (1 busy)\n" +
			"[##############################] 2/2, 0 running, 0 failed, 2/s, 1 executor\n"
		if out.String() != want {
			t.Errorf("wrote\n%swant\n%s", out, want)
		}
	})
}

// Where there is no terminal, a line comes soon and then one every few seconds, however much happens; at the end comes the last.
func TestProgressElsewhereIsSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		g := newProgress(out, 1000, false)
		for range 1000 {
			seen(g, succeeded, time.Now().String())
			time.Sleep(10 * time.Millisecond)
		}
		g.done()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 5 || !strings.Contains(lines[0], " 51/1000,") || !strings.Contains(lines[4], " 1000/1000,") {
			t.Errorf("wrote %d lines in 10 s, want 5 from 51/1000 to 1000/1000:\n%s", len(lines), out)
		}
	})
}

// On a terminal the line is drawn over, makes room for other output, and is left there at the end.
func TestProgressOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		g := newProgress(out, 2, false)
		g.live = true
		time.Sleep(drawFrom)
		seen(g, running, "a")
		seen(g, running, "b") // too soon to be drawn
		g.clear()
		g.clear() // there is nothing to be cleared any more
		seen(g, succeeded, "a", "b")
		g.done()
		if n := strings.Count(out.String(), "\r\x1b[K"); n != 4 { // drawn, cleared, drawn, drawn
			t.Errorf("drew over the line %d times, want 4: %q", n, out)
		}
		if !strings.HasSuffix(out.String(), "2/2, 0 running, 0 failed\n") && !strings.HasSuffix(out.String(), "/s\n") {
			t.Errorf("ended with %q, want the last state and a new line", out)
		}
	})
}

// Of a job that is refused nothing is shown, neither of what was seen before the refusal nor at the end; one that ends is shown, however soon.
func TestProgressOfARefusedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, live := range []bool{true, false} {
			out := &bytes.Buffer{}
			g := newProgress(out, 1, false)
			g.live = live
			seen(g, succeeded, "of-a-job-before")
			g.close(errors.New("refused"))
			if out.Len() > 0 {
				t.Errorf("live %t: wrote %q, want nothing", live, out)
			}
			g.close(client.ErrIncomplete)
			if !strings.Contains(out.String(), "] 1/1, ") {
				t.Errorf("live %t: wrote %q, want the last state", live, out)
			}
		}
	})
}

// Of a single command's progress nothing is left on a terminal, and nothing is shown elsewhere.
func TestProgressOfASingleCommandPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, live := range []bool{true, false} {
			out := &bytes.Buffer{}
			g := newProgress(out, 1, false)
			g.passing, g.live = true, live
			time.Sleep(drawFrom)
			seen(g, running, "a")
			g.done()
			if live != strings.HasPrefix(out.String(), "\r\x1b[K[") || strings.Contains(out.String(), "\n") || live != strings.HasSuffix(out.String(), "\r\x1b[K") {
				t.Errorf("live %t: wrote %q, want a line that is taken away, on a terminal only", live, out)
			}
		}
	})
}
