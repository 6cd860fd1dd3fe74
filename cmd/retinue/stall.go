package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// stall is what is known of a job's not going on because there is no executor.
type stall struct {
	since       time.Time // when there were found to be none; zero while there are some
	reason, why string    // what the daemon says of it
	told        string    // the reason that was told last
}

// patientFor is how long a fleet may have no executor before a person is told why: most start sooner.
const patientFor = 3 * time.Second

// fleet follows the executors, for the line's end, until the function that it returns is called.
func (g *progress) fleet(ctx context.Context, c *client.Client, job client.Job) (stop func()) {
	if g.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { g.follow(ctx, c, job) })
	running.Go(func() { g.remind(ctx) })
	return func() { cancel(); running.Wait() }
}

// follow sees the application as it changes. Where it may not, nothing is said of executors.
func (g *progress) follow(ctx context.Context, c *client.Client, job client.Job) {
	stream, err := c.Applications.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Application: job.Application, Namespace: job.Namespace})
	if err != nil {
		return
	}
	_ = each(stream, func(msg *apiv1.WatchApplicationsResponse) error { // its end is not that of the job
		for _, app := range msg.GetApplications() {
			g.application(app)
		}
		return nil
	})
}

// remind looks now and then whether there is something to be told, because an application at which nothing happens does not change.
func (g *progress) remind(ctx context.Context) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			g.tell()
		}
	}
}

// application sees the application as it is now.
func (g *progress) application(app *apiv1.Application) {
	now := &workers{}
	for _, p := range app.GetStatus().GetProfiles() {
		now.registered += p.GetRegistered()
		now.busy += p.GetBusy()
	}
	why := condition(app, "Limited")
	if !why.GetStatus() {
		why = condition(app, "Progressing")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fleetAt = now
	g.stalled.reason, g.stalled.why = why.GetReason(), clean(why.GetMessage())
	switch {
	case now.registered > 0:
		g.stalled.since, g.stalled.told = time.Time{}, ""
	case g.stalled.since.IsZero():
		g.stalled.since = time.Now()
	}
	g.draw()
}

// tell draws the line, which may have waited for its time, and says why tasks wait and no executor comes, once for each reason.
func (g *progress) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draw()
	s := &g.stalled
	if g.quiet || s.since.IsZero() || time.Since(s.since) < patientFor || s.why == "" || s.reason == s.told || g.ended() == g.all {
		return
	}
	s.told = s.reason
	if g.drawn {
		fmt.Fprint(g.out, "\r\x1b[K")
	}
	fmt.Fprintf(g.out, "retinue: there is no executor yet: %s\n", s.why)
	if g.drawn {
		g.show()
	}
}
