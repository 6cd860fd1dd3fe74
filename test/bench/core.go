package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
)

// The sizes of fleets that the core is measured with.
const (
	few    = 100
	usual  = 1_000
	plenty = 10_000
)

const (
	coreRounds = 20  // in turns between the sizes
	coreTurns  = 100 // executors replaced in a round
	coreTasks  = 200 // tasks that end in a round
)

// costs are the times of events by what they tell.
type costs struct {
	crowd *crowd
	kinds map[string]samples
	tasks samples
}

func (c *costs) tell(kind string, ev application.Event) {
	d := c.crowd.tell(ev)
	c.kinds[kind] = append(c.kinds[kind], d)
}

func (c *costs) all() samples {
	var all samples
	for _, s := range c.kinds {
		all = append(all, s...)
	}
	return all
}

// dearest is the kind of event with the greatest median.
func (c *costs) dearest() (kind string, median time.Duration) {
	for _, k := range []string{"unchanged", "ended", "gone", "pending", "running"} {
		if m := c.kinds[k].median(); m > median {
			kind, median = k, m
		}
	}
	return kind, median
}

// core measures what an event costs the state machine, from fleets of a hundred to ten thousand executors in turns.
func core(ctx context.Context, _ settings) ([]row, error) {
	bySize := map[int]*costs{}
	sizes := []int{few, usual, plenty}
	for _, size := range sizes {
		crowd, err := newCrowd(size)
		if err != nil {
			return nil, fmt.Errorf("filling a fleet of %d executors: %w", size, err)
		}
		bySize[size] = &costs{crowd: crowd, kinds: map[string]samples{}}
	}
	if err := rounds(ctx, bySize, sizes, (*costs).turnPods); err != nil {
		return nil, err
	}
	for _, size := range sizes {
		bySize[size].crowd.submit(size + coreRounds*coreTasks) // so that there is always one for who is free
	}
	if err := rounds(ctx, bySize, sizes, (*costs).endTasks); err != nil {
		return nil, err
	}
	return coreRows(bySize), nil
}

// rounds measures in turns between the sizes.
func rounds(ctx context.Context, bySize map[int]*costs, sizes []int, measure func(*costs) error) error {
	for range coreRounds {
		for _, size := range sizes {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := measure(bySize[size]); err != nil {
				return fmt.Errorf("with %d executors: %w", size, err)
			}
		}
	}
	return nil
}

func (c *costs) turnPods() error {
	for range coreTurns {
		if err := c.crowd.turn(c.tell); err != nil {
			return err
		}
	}
	return nil
}

func (c *costs) endTasks() error {
	for range coreTasks {
		d, err := c.crowd.report()
		if err != nil {
			return err
		}
		c.tasks = append(c.tasks, d)
	}
	return nil
}

func coreRows(bySize map[int]*costs) []row {
	all := map[int]samples{few: bySize[few].all(), usual: bySize[usual].all(), plenty: bySize[plenty].all()}
	kind, dearest := bySize[usual].dearest()
	return []row{
		took("one pod event to its effects, 1,000 executors, median", all[usual].median(), microseconds).atMost(20).
			noted("%d events", len(all[usual])),
		took("  p99", all[usual].quantile(0.99), microseconds),
		took("  the dearest kind of event, median", dearest, microseconds).atMost(20).noted("%s", kind),
		measured("a pod event with 10,000 executors over 100, medians", over(all[plenty], all[few]), times).
			atMost(1.5).noted("%v over %v", all[plenty].median(), all[few].median()),
		measured("  the kind of event that grows most", slices.Max(growths(bySize[few], bySize[plenty])), times),
		took("a task's end to the next launch, 1,000 executors, median", bySize[usual].tasks.median(), microseconds),
		measured("  with 10,000 executors over 100", over(bySize[plenty].tasks, bySize[few].tasks), times),
	}
}

// over compares medians.
func over(large, small samples) float64 { return float64(large.median()) / float64(small.median()) }

// growths is how much each kind of event costs in one fleet over another.
func growths(small, large *costs) []float64 {
	var list []float64
	for kind, s := range large.kinds {
		list = append(list, over(s, small.kinds[kind]))
	}
	return list
}
