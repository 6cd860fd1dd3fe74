package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retinue-sched/retinue/sdk/client"
)

// The pauses of a watch that was cut, and how long it looks for a daemon that does not come back.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	watchPatience = 5 * time.Minute
)

// watched looks, and looks again whenever the look is cut, until the person interrupts, or what is watched is not there, or the daemon stays
// away for long. look calls heard with everything that comes. A daemon that was never heard is not waited for.
func (p *program) watched(ctx context.Context, look func(ctx context.Context, heard func()) error) error {
	var cut time.Time // since when nothing is heard; zero: something is, or was never
	var ever bool
	var pause time.Duration
	heard := func() {
		if !cut.IsZero() {
			fmt.Fprintln(p.err, "retinue: the watch goes on")
		}
		cut, ever, pause = time.Time{}, true, 0
	}
	for {
		err := look(ctx, heard)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !ever || !passes(err):
			return err
		case cut.IsZero():
			cut = time.Now()
			fmt.Fprintf(p.err, "retinue: the watch was cut (%s): connecting again\n", p.cut(err))
		case time.Since(cut) > watchPatience:
			return err
		}
		pause = min(max(2*pause, shortestPause), longestPause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// passes reports whether a watch that ended so may go on later: the stream ended or broke, or the daemon was not content with how it went.
func passes(err error) bool {
	if known := (*exitError)(nil); errors.As(err, &known) {
		return false
	}
	kind, _, fromCall := client.Explain(err)
	return err == nil || (fromCall && slices.Contains([]client.Kind{client.Unreachable, client.Late, client.Failed}, kind))
}

// cut says why a watch was cut.
func (p *program) cut(err error) string {
	_, text, _ := client.Explain(err)
	text = strings.TrimSuffix(text, ": call again") // which is what comes next
	switch {
	case text == "":
		return "the daemon ended it"
	case protocols.MatchString(text):
		return "the connection broke"
	default:
		return text
	}
}
