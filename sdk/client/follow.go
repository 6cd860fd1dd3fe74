package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// follower counts a job's ends, each once.
type follower struct {
	job          Job
	accepted     atomic.Int64    // how many of the job's tasks, from the first, the daemon has accepted
	ended        map[string]bool // by the key of each of the job's tasks
	left         int
	unsuccessful int
}

func newFollower(job Job) *follower {
	f := &follower{job: job, ended: make(map[string]bool, len(job.Tasks)), left: len(job.Tasks)}
	for _, t := range job.Tasks {
		f.ended[t.GetKey()] = false
	}
	return f
}

func (f *follower) see(t *apiv1.Task) {
	if ended, own := f.ended[t.GetKey()]; ended || !own {
		return
	}
	if t.GetState() >= apiv1.TaskState_TASK_STATE_SUCCEEDED {
		f.ended[t.GetKey()] = true
		f.left--
		if t.GetState() != apiv1.TaskState_TASK_STATE_SUCCEEDED {
			f.unsuccessful++
		}
	}
	if f.job.Changed != nil {
		f.job.Changed(t)
	}
}

// forgotten lists the tasks, of the first so many, that are not among what the daemon knows and whose ends were not seen.
func (f *follower) forgotten(accepted int64, known map[string]bool) []*apiv1.TaskSpec {
	var out []*apiv1.TaskSpec
	for _, t := range f.job.Tasks[:accepted] {
		if !f.ended[t.GetKey()] && !known[t.GetKey()] {
			out = append(out, t)
		}
	}
	return out
}

// follow watches until all tasks have ended, over as many streams as it takes.
func (c *Client) follow(ctx context.Context, f *follower) error {
	var pause patience
	for f.left > 0 {
		err := c.watch(ctx, f, &pause)
		if f.left == 0 {
			return nil
		}
		if err = pause.wait(ctx, err); err != nil {
			return fmt.Errorf("following job %s: %w", f.job.Name, err)
		}
	}
	return nil
}

// errEnded is a stream that the daemon ended while there was more to come.
var errEnded = status.Error(codes.Unavailable, "the daemon ended the stream")

// watch follows one stream, until all tasks have ended or the stream has.
func (c *Client) watch(ctx context.Context, f *follower, pause *patience) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	accepted := f.accepted.Load() // before the stream opens: what was accepted by now must be in its list
	stream, err := c.Tasks.WatchTasks(ctx, &apiv1.WatchTasksRequest{
		Application: f.job.Application, Namespace: f.job.Namespace, Job: f.job.Name, WithoutOutput: f.job.WithoutOutput,
	})
	if err != nil {
		return err
	}
	known := make(map[string]bool) // until all are listed
	for f.left > 0 {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errEnded
		}
		if err != nil {
			return err
		}
		pause.over()
		for _, t := range msg.GetTasks() {
			if known != nil {
				known[t.GetKey()] = true
			}
			f.see(t)
		}
		if msg.GetListed() {
			if err := c.remind(ctx, f.job, f.forgotten(accepted, known)); err != nil {
				return err
			}
			known = nil
		}
	}
	return nil
}

// remind submits again what a daemon has forgotten.
func (c *Client) remind(ctx context.Context, job Job, tasks []*apiv1.TaskSpec) error {
	if len(tasks) == 0 {
		return nil
	}
	job.Tasks = tasks
	return c.submit(ctx, job, new(atomic.Int64))
}
