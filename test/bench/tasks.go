package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
	"github.com/retinue-sched/retinue/test/fleet"
)

// How many tasks are measured; a tenth of them goes before, to warm up.
const (
	realTasks  = 3_000
	lightTasks = 30_000
)

// manySlots is how many tasks a light executor is given ahead, so that no slot waits for the way there and back.
const manySlots = 64

// tasks measures how many tasks that do nothing a fleet of six runs in a second: with real executors, which start a process for each, beside the
// same processes started by hand; and with light ones, which start none.
func tasks(ctx context.Context, set settings) (rows []row, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	light := []string{self, lightArg}
	err = withFleet(ctx, set, func(f *fleet.Fleet) (err error) {
		run, err := throughput(ctx, f, "true", realTasks, &apiv1.ProfileSpec{Slots: 1})
		if err != nil {
			return err
		}
		bare, err := bareProcesses(ctx, realTasks)
		if err != nil {
			return err
		}
		one, err := throughput(ctx, f, "light", lightTasks, &apiv1.ProfileSpec{Slots: 1, Command: light})
		if err != nil {
			return err
		}
		many, err := throughput(ctx, f, "ahead", lightTasks, &apiv1.ProfileSpec{Slots: manySlots, Command: light})
		if err != nil {
			return err
		}
		rows = []row{
			measured("no-op tasks, 6 executors, a process each", run, perSecond).noted("%d tasks of `true`", realTasks),
			measured("  of the same processes without Retinue, 6 at once", 100*run/bare, percent).noted("%.0f/s", bare),
			measured("the plane alone, 6 light executors, 1 slot each", one, perSecond).noted("%d tasks", lightTasks),
			measured("the plane alone, 6 light executors, 64 slots each", many, perSecond).noted("%d tasks", lightTasks),
		}
		return nil
	})
	return rows, err
}

// throughput is how many tasks a second a fleet of a kind runs, from the first submission to the client's sight of the last end.
func throughput(ctx context.Context, f *fleet.Fleet, app string, n int, profile *apiv1.ProfileSpec) (float64, error) {
	if err := apply(ctx, f, app, profile); err != nil {
		return 0, err
	}
	if _, err := runJob(ctx, f, app, "warm", n/10); err != nil {
		return 0, err
	}
	d, err := runJob(ctx, f, app, "job", n)
	if err != nil {
		return 0, err
	}
	return float64(n) / d.Seconds(), remove(ctx, f, app)
}

func runJob(ctx context.Context, f *fleet.Fleet, app, name string, n int) (time.Duration, error) {
	job := client.Job{Application: app, Name: name, WithoutOutput: true}
	for i := range n {
		job.Tasks = append(job.Tasks, &apiv1.TaskSpec{Key: fmt.Sprintf("%s-%d", name, i), Command: []string{"true"}})
	}
	began := time.Now()
	if err := f.Client.Run(ctx, job); err != nil {
		return 0, fmt.Errorf("running %d tasks on %s: %w", n, app, err)
	}
	return time.Since(began), nil
}

// bareProcesses is how many processes that do nothing this machine starts and ends in a second, as many at once as there are executors.
func bareProcesses(ctx context.Context, n int) (float64, error) {
	began := time.Now()
	parts, ctx := errgroup.WithContext(ctx)
	for range executors {
		parts.Go(func() error {
			for range n / executors {
				if err := exec.CommandContext(ctx, "true").Run(); err != nil {
					return fmt.Errorf("starting a process: %w", err)
				}
			}
			return nil
		})
	}
	if err := parts.Wait(); err != nil {
		return 0, err
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
