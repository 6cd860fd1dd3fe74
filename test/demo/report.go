package main

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// profile is the only profile's status.
func (d *demo) profile() *apiv1.ProfileStatus { return d.final.GetStatus().GetProfiles()[0] }

// decisionsBy is how many decisions a module made.
func (d *demo) decisionsBy(digest string) uint64 {
	for _, c := range d.final.GetStatus().GetPolicy().GetDecisions() {
		if c.GetDigest() == digest {
			return c.GetCount()
		}
	}
	return 0
}

// check holds the run against what the demo is to show.
func (d *demo) check() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	status := d.final.GetStatus()
	want(status.GetTasks().GetSucceeded() == uint64(d.tasks), "%d of %d tasks succeeded", status.GetTasks().GetSucceeded(), d.tasks)
	want(d.profile().GetPeak() == executors, "at most %d executors worked at once, not %d: the job may have been over too soon", d.profile().GetPeak(), executors)
	want(d.killed == 1, "%d executors were killed, not 1", d.killed)
	want(status.GetPolicy().GetSwaps() == 1, "the policy was swapped %d times, not once", status.GetPolicy().GetSwaps())
	want(d.decisionsBy(d.elastic) >= 1, "the policy elastic (%s) made no decision", d.elastic)
	want(status.GetTasks().GetRetried() >= 1, "no task was tried again although an executor was killed with one")
	want(d.identical, "the reports were not compared")
	return errors.Join(errs...)
}

// summary prints the table and the last line.
func (d *demo) summary(all time.Duration) {
	status := d.final.GetStatus()
	job := d.over.Sub(d.began)
	slices.Sort(d.took)
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("audited", "%s", d.root)
	row("tasks", "%d succeeded, %d tried again", status.GetTasks().GetSucceeded(), status.GetTasks().GetRetried())
	row("executors", "%d at once at most, %d created, %d killed", d.profile().GetPeak(), d.profile().GetCreated(), d.killed)
	row("job", "%.1f s, %.0f tasks/s", job.Seconds(), float64(d.tasks)/job.Seconds())
	row("time of a task", "p50 %v, p99 %v", quantile(d.took, 0.50), quantile(d.took, 0.99))
	for _, c := range status.GetPolicy().GetDecisions() {
		row("decisions", "%d by %s %s", c.GetCount(), c.GetPolicy(), shortDigest(c.GetDigest()))
	}
	row("policy faults", "%d", status.GetPolicy().GetFaults())
	_ = table.Flush()
	fmt.Fprintf(d.out, "demo: ok tasks=%d executors_peak=%d executors_killed=%d policy_swaps=%d decisions_after_swap=%d retried=%d identical=%t seconds=%.1f\n",
		status.GetTasks().GetSucceeded(), d.profile().GetPeak(), d.killed, status.GetPolicy().GetSwaps(), d.decisionsBy(d.elastic),
		status.GetTasks().GetRetried(), d.identical, all.Seconds())
}

// quantile of sorted durations, rounded for people.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(100 * time.Microsecond)
}

func shortDigest(digest string) string {
	const shown = len("sha256:") + 12
	if len(digest) <= shown {
		return digest
	}
	return digest[:shown]
}
