package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// plainEvery is the time between two lines where there is no terminal.
const plainEvery = 2 * time.Second

// screen shows how it goes: a bar and a fleet line that are drawn over on a terminal, a plain line now and then elsewhere.
type screen struct {
	out   io.Writer
	live  bool
	drawn bool
	last  time.Time
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	return &screen{out: out, live: ok && term.IsTerminal(int(file.Fd()))}
}

func (s *screen) show(ended, tasks int, status *apiv1.ApplicationStatus) {
	if len(status.GetProfiles()) == 0 {
		return
	}
	if s.live {
		if s.drawn {
			fmt.Fprint(s.out, "\x1b[2A")
		}
		s.drawn = true
		fmt.Fprintf(s.out, "\r\x1b[K%s\n\r\x1b[K%s\n", bar(ended, tasks, 40), fleetLine(status))
		return
	}
	if time.Since(s.last) < plainEvery {
		return
	}
	s.last = time.Now()
	fmt.Fprintf(s.out, "%d/%d tasks; %s\n", ended, tasks, fleetLine(status))
}

// done leaves what was drawn and goes on below it.
func (s *screen) done() { s.drawn = false }

// bar is a progress bar of a width.
func bar(ended, tasks, width int) string {
	full := 0
	if tasks > 0 {
		full = ended * width / tasks
	}
	return fmt.Sprintf("[%s%s] %d/%d tasks", strings.Repeat("#", full), strings.Repeat(".", width-full), ended, tasks)
}

// fleetLine is the fleet in a line.
func fleetLine(status *apiv1.ApplicationStatus) string {
	p := status.GetProfiles()[0]
	return fmt.Sprintf("executors: target %d, requested %d, pending %d, running %d, registered %d, busy %d; policy %s, %s, %d swaps",
		p.GetTarget(), p.GetRequested(), p.GetPending(), p.GetRunning(), p.GetRegistered(), p.GetBusy(),
		status.GetPolicy().GetPolicy(), status.GetMode(), status.GetPolicy().GetSwaps())
}
