package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// progress shows how a job goes: one line that is drawn over on a terminal, a line every few seconds elsewhere.
type progress struct {
	out   io.Writer
	live  bool
	quiet bool
	// passing is set if nothing shall be left of it: a single command's output says all there is.
	passing bool
	all     int
	began   time.Time

	mu      sync.Mutex
	states  map[string]apiv1.TaskState
	counts  [apiv1.TaskState_TASK_STATE_EXPIRED + 1]int
	fleetAt *workers // nil: nothing is known of it
	drawn   bool
	last    time.Time
	printed string // the line that was printed last, where there is no terminal
	stalled stall
}

// workers is the fleet as it was seen last.
type workers struct{ registered, busy uint32 }

// How often progress is shown.
const (
	drawFrom   = 500 * time.Millisecond // a job that is refused is so at once, and shall show no line before
	drawEvery  = 100 * time.Millisecond
	printEvery = 3 * time.Second
)

func newProgress(out io.Writer, all int, quiet bool) *progress {
	file, ok := out.(*os.File)
	return &progress{
		out: out, live: ok && term.IsTerminal(int(file.Fd())), quiet: quiet, all: all, began: time.Now(),
		states: make(map[string]apiv1.TaskState, all),
	}
}

// see counts a task's change.
func (g *progress) see(t *apiv1.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if before, known := g.states[t.GetKey()]; known {
		g.counts[before]--
	}
	state := min(max(t.GetState(), 0), apiv1.TaskState_TASK_STATE_EXPIRED)
	g.states[t.GetKey()] = state
	g.counts[state]++
	g.draw()
}

func (g *progress) unsuccessful() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed()
}

// failed counts the tasks that ended otherwise than well. Who calls it holds mu, as for ended.
func (g *progress) failed() int {
	return g.counts[apiv1.TaskState_TASK_STATE_FAILED] + g.counts[apiv1.TaskState_TASK_STATE_CANCELLED] + g.counts[apiv1.TaskState_TASK_STATE_EXPIRED]
}

func (g *progress) ended() int { return g.counts[apiv1.TaskState_TASK_STATE_SUCCEEDED] + g.failed() }

// draw shows the line if it is time to.
func (g *progress) draw() {
	every := printEvery
	if g.live {
		every = drawEvery
	}
	if g.quiet || (g.passing && !g.live) || time.Since(g.last) < every || time.Since(g.began) < drawFrom {
		return
	}
	g.last = time.Now()
	g.show()
}

func (g *progress) show() {
	if g.live {
		fmt.Fprintf(g.out, "\r\x1b[K%s", g.line())
		g.drawn = true
		return
	}
	if line := g.line(); line != g.printed {
		fmt.Fprintln(g.out, line)
		g.printed = line
	}
}

// line is how it goes.
func (g *progress) line() string {
	running := g.counts[apiv1.TaskState_TASK_STATE_RUNNING] + g.counts[apiv1.TaskState_TASK_STATE_LAUNCHED]
	failed, ended := g.failed(), g.ended()
	const width = 30
	full := 0
	if g.all > 0 {
		full = min(ended*width/g.all, width)
	}
	text := fmt.Sprintf("[%s%s] %d/%d, %d running, %d failed", strings.Repeat("#", full), strings.Repeat(".", width-full), ended, g.all, running, failed)
	if rate := float64(ended) / time.Since(g.began).Seconds(); ended > 0 {
		text += fmt.Sprintf(", %.0f/s", rate)
		if left := g.all - ended; left > 0 {
			text += fmt.Sprintf(", %v left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
		}
	}
	return text + g.fleetText(ended == g.all)
}

// fleetText ends the line with the executors. How many are busy is news only while there is work: at the end, what was seen of it last is old.
func (g *progress) fleetText(over bool) string {
	switch {
	case g.fleetAt == nil:
		return ""
	case over:
		return ", " + count(g.fleetAt.registered, "executor")
	default:
		return fmt.Sprintf(", %s (%d busy)", count(g.fleetAt.registered, "executor"), g.fleetAt.busy)
	}
}

// clear takes the line away, so that something else can be written in its place.
func (g *progress) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.drawn {
		fmt.Fprint(g.out, "\r\x1b[K")
		g.drawn = false
		g.last = time.Time{}
	}
}

// close ends the line of a job that ended with err: what there is to be seen of one that was not run at all would mislead.
func (g *progress) close(err error) {
	if err == nil || errors.Is(err, client.ErrIncomplete) {
		g.done()
		return
	}
	g.clear()
}

// done leaves the last state of things on the screen.
func (g *progress) done() {
	if g.passing {
		g.clear()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quiet {
		return
	}
	g.show()
	if g.live {
		fmt.Fprintln(g.out)
	}
}
