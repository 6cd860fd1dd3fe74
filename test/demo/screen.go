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

// screen shows how it goes: a bar and a fleet line that are drawn over on a terminal, elsewhere a plain line now and then if something is new.
type screen struct {
	out   io.Writer
	live  bool
	drawn bool
	last  time.Time
	said  string                   // the plain line that was printed last
	fleet *apiv1.ApplicationStatus // as it was seen last
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	return &screen{out: out, live: ok && term.IsTerminal(int(file.Fd()))}
}

// show shows an application that somebody decides for; before, there is nothing to be seen.
func (s *screen) show(ended, tasks int, status *apiv1.ApplicationStatus) {
	if len(status.GetProfiles()) == 0 || status.GetPolicy().GetPolicy() == "" {
		return
	}
	s.fleet = status
	if !s.live && time.Since(s.last) < plainEvery {
		return
	}
	s.last = time.Now()
	s.draw(ended, tasks, false)
}

func (s *screen) draw(ended, tasks int, over bool) {
	if !s.live {
		if line := fmt.Sprintf("%d/%d tasks; %s", ended, tasks, fleetLine(s.fleet, over)); line != s.said {
			fmt.Fprintln(s.out, line)
			s.said = line
		}
		return
	}
	if s.drawn {
		fmt.Fprint(s.out, "\x1b[2A")
	}
	s.drawn = true
	fmt.Fprintf(s.out, "\r\x1b[K%s\n\r\x1b[K%s\n", bar(ended, tasks, 40), fleetLine(s.fleet, over))
}

// done shows how it ended, leaves that, and goes on below it.
func (s *screen) done(ended, tasks int) {
	if s.fleet != nil {
		s.draw(ended, tasks, true)
	}
	s.drawn = false
}

// bar is a progress bar of a width.
func bar(ended, tasks, width int) string {
	full := 0
	if tasks > 0 {
		full = ended * width / tasks
	}
	return fmt.Sprintf("[%s%s] %d/%d tasks", strings.Repeat("#", full), strings.Repeat(".", width-full), ended, tasks)
}

// fleetLine is the fleet in a line. How many are busy is left out when the job is over: what was seen of it last is old then.
func fleetLine(status *apiv1.ApplicationStatus, over bool) string {
	p, policy := status.GetProfiles()[0], status.GetPolicy()
	busy := fmt.Sprintf(", busy %d", p.GetBusy())
	if over {
		busy = ""
	}
	swaps := "swaps"
	if policy.GetSwaps() == 1 {
		swaps = "swap"
	}
	return fmt.Sprintf("executors: target %d, requested %d, pending %d, running %d, registered %d%s; policy %s, %s, %d %s",
		p.GetTarget(), p.GetRequested(), p.GetPending(), p.GetRunning(), p.GetRegistered(), busy, policy.GetPolicy(), status.GetMode(), policy.GetSwaps(), swaps)
}
