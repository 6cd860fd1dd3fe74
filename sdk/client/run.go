package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// Job is a set of tasks to be run to their ends.
type Job struct {
	Application string
	Namespace   string // the daemon's default when empty
	// Name groups the tasks; made up when empty. Running the same name and keys again picks up what was submitted before.
	Name  string
	Tasks []*apiv1.TaskSpec
	// Changed, if set, sees tasks as they change, on one goroutine. An end is seen exactly once; states before it may be skipped or repeated.
	Changed func(*apiv1.Task)
	// WithoutOutput leaves the tasks' output out of what Changed sees.
	WithoutOutput bool
}

// submitChunk bounds one submission: tasks and bytes.
const (
	submitChunk = 1000
	submitBytes = 1 << 20
)

// Run submits a job's tasks and follows them until all have ended. It returns ErrIncomplete if some did not succeed, and otherwise what stopped it.
// A broken connection is waited for as long as ctx lasts; tasks are told apart by key, so nothing is submitted or reported twice.
func (c *Client) Run(ctx context.Context, job Job) error {
	job = job.named()
	f := &follower{job: job, ended: make(map[string]bool, len(job.Tasks)), wanted: len(job.Tasks), own: make(map[string]bool, len(job.Tasks))}
	for _, t := range job.Tasks {
		if f.own[t.GetKey()] {
			return fmt.Errorf("running job %s: the key %q is there twice", job.Name, t.GetKey())
		}
		f.own[t.GetKey()] = true
	}
	if f.wanted == 0 {
		return nil
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.submit(groupCtx, job) })
	group.Go(func() error { return c.follow(groupCtx, f) })
	if err := group.Wait(); err != nil {
		return err
	}
	if f.unsuccessful > 0 {
		return fmt.Errorf("running job %s: %d of %d: %w", job.Name, f.unsuccessful, f.wanted, ErrIncomplete)
	}
	return nil
}

// Submit submits a job's tasks and does not wait. It returns the job's name.
func (c *Client) Submit(ctx context.Context, job Job) (string, error) {
	job = job.named()
	return job.Name, c.submit(ctx, job)
}

// JobName returns the name, or makes one up if there is none.
func JobName(name string) string {
	if name != "" {
		return name
	}
	return "job-" + strings.ToLower(rand.Text()[:10])
}

// named fills in the names that are missing, without touching the caller's tasks.
func (j Job) named() Job {
	j.Name = JobName(j.Name)
	tasks := make([]*apiv1.TaskSpec, len(j.Tasks))
	for i, t := range j.Tasks {
		t = proto.CloneOf(t)
		t.Job = j.Name
		if t.Key == "" {
			t.Key = fmt.Sprintf("%s-%d", j.Name, i+1)
		}
		tasks[i] = t
	}
	j.Tasks = tasks
	return j
}

func (c *Client) submit(ctx context.Context, job Job) error {
	for rest := job.Tasks; len(rest) > 0; {
		n := chunk(rest)
		req := &apiv1.SubmitTasksRequest{Application: job.Application, Namespace: job.Namespace, Tasks: rest[:n]}
		err := again(ctx, func() error {
			_, err := c.Tasks.SubmitTasks(ctx, req)
			return err
		})
		if err != nil {
			return fmt.Errorf("submitting tasks of job %s: %w", job.Name, err)
		}
		rest = rest[n:]
	}
	return nil
}

// chunk is how many tasks fit into one submission.
func chunk(tasks []*apiv1.TaskSpec) int {
	bytes := 0
	for i, t := range tasks {
		bytes += proto.Size(t)
		if i == submitChunk || (bytes > submitBytes && i > 0) {
			return i
		}
	}
	return len(tasks)
}

// follower counts ends.
type follower struct {
	job          Job
	own          map[string]bool
	ended        map[string]bool
	wanted       int
	unsuccessful int
}

func (f *follower) see(t *apiv1.Task) {
	if !f.own[t.GetKey()] || f.ended[t.GetKey()] {
		return
	}
	if t.GetState() >= apiv1.TaskState_TASK_STATE_SUCCEEDED {
		f.ended[t.GetKey()] = true
		if t.GetState() != apiv1.TaskState_TASK_STATE_SUCCEEDED {
			f.unsuccessful++
		}
	}
	if f.job.Changed != nil {
		f.job.Changed(t)
	}
}

func (c *Client) follow(ctx context.Context, f *follower) error {
	for {
		err := again(ctx, func() error { return c.watch(ctx, f) })
		if err != nil {
			return fmt.Errorf("following job %s: %w", f.job.Name, err)
		}
		if len(f.ended) == f.wanted {
			return nil
		}
	}
}

// watch follows one stream. It returns nil when all tasks have ended, or when the stream did.
func (c *Client) watch(ctx context.Context, f *follower) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Tasks.WatchTasks(ctx, &apiv1.WatchTasksRequest{
		Application: f.job.Application, Namespace: f.job.Namespace, Job: f.job.Name, WithoutOutput: f.job.WithoutOutput,
	})
	if err != nil {
		return err
	}
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, t := range msg.GetTasks() {
			f.see(t)
		}
		if len(f.ended) == f.wanted {
			return nil
		}
	}
}

// again repeats a call while the daemon is away or asks for patience, with growing pauses.
func again(ctx context.Context, call func() error) error {
	pause := 50 * time.Millisecond
	for {
		err := call()
		switch status.Code(err) {
		case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
}
