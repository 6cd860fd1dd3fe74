package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/test/fleet"
)

const (
	idleTime  = 10 * time.Second
	idleQuiet = 3 * time.Second // without a change, before the measurement begins
	// clockTicks is how many of the kernel's units of CPU time there are in a second: USER_HZ, which is 100 for every program on Linux.
	clockTicks = 100
)

// idle measures what a daemon costs whose executors have nothing to do, and that it leaves the cluster alone.
func idle(ctx context.Context, set settings) (rows []row, err error) {
	err = withFleet(ctx, set, func(f *fleet.Fleet) (err error) {
		if err = apply(ctx, f, "idle", &apiv1.ProfileSpec{}); err != nil {
			return err
		}
		if err = settle(ctx, f); err != nil {
			return err
		}
		rows, err = watchIdle(ctx, f)
		return err
	})
	return rows, err
}

// settle waits until the cluster has not changed for a while.
func settle(ctx context.Context, f *fleet.Fleet) error {
	last, since := "", time.Now()
	return until(ctx, "a quiet cluster", func(ctx context.Context) (bool, error) {
		_, version, err := f.Pods(ctx, "idle")
		if version != last {
			last, since = version, time.Now()
		}
		return time.Since(since) >= idleQuiet, err
	})
}

func watchIdle(ctx context.Context, f *fleet.Fleet) ([]row, error) {
	version, err := clusterVersion(ctx, f)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	before, err := cpuTime(f.PID())
	if err != nil {
		return nil, err
	}
	if err = pause(ctx, idleTime); err != nil {
		return nil, err
	}
	after, err := cpuTime(f.PID())
	if err != nil {
		return nil, err
	}
	lasted := time.Since(began)
	later, err := clusterVersion(ctx, f)
	if err != nil {
		return nil, err
	}
	return []row{
		measured("CPU of retinued with 6 executors, of a core", 100*(after-before).Seconds()/lasted.Seconds(), percent).atMost(1).
			noted("over %v, in steps of %v", lasted.Round(time.Millisecond), time.Second/clockTicks),
		measured("writes to the cluster meanwhile, by anyone", float64(later-version), count).atMost(0),
	}, nil
}

// clusterVersion counts the writes that the cluster has seen: the local cluster's version goes up by one with each.
func clusterVersion(ctx context.Context, f *fleet.Fleet) (uint64, error) {
	pods, text, err := f.Pods(ctx, "idle")
	if err != nil {
		return 0, err
	}
	if len(pods) != executors {
		return 0, fmt.Errorf("the fleet has %d pods, not %d: it is not at rest", len(pods), executors)
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the cluster's version: %w", err)
	}
	return version, nil
}

// cpuTime is the CPU time that a process has used.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	ticks, err := parseStat(text)
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ticks) * (time.Second / clockTicks), nil
}

// parseStat reads user and system time from a line of /proc/PID/stat. The name, second and in parentheses, may hold anything.
func parseStat(line []byte) (ticks int64, err error) {
	const user, system = 11, 12 // counted from the field after the name
	end := bytes.LastIndexByte(line, ')')
	fields := bytes.Fields(line[end+1:])
	if end < 0 || len(fields) <= system {
		return 0, fmt.Errorf("%q is not a line of /proc/PID/stat", line)
	}
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return ticks, nil
}
