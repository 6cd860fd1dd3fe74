package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
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
// A broken connection and a full queue are waited for as long as ctx lasts; tasks are told apart by key, so no end is reported twice. A task that
// the daemon has no memory of (it was restarted, or forgot the task's end while the connection was broken) is submitted again, and its deadline
// counts anew.
func (c *Client) Run(ctx context.Context, job Job) error {
	job, err := job.prepared()
	if err != nil {
		return err
	}
	if len(job.Tasks) == 0 {
		return nil
	}
	f := newFollower(job)
	ctx, done := context.WithCancel(ctx)
	defer done()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.submit(groupCtx, job, &f.accepted) })
	group.Go(func() error { return c.follow(groupCtx, f) })
	if err := group.Wait(); err != nil {
		return err
	}
	if f.unsuccessful > 0 {
		return fmt.Errorf("running job %s: %d of %d: %w", job.Name, f.unsuccessful, len(job.Tasks), ErrIncomplete)
	}
	return nil
}

// Submit submits a job's tasks and does not wait for them, only for room in the queue. It returns the job's name.
func (c *Client) Submit(ctx context.Context, job Job) (string, error) {
	job, err := job.prepared()
	if err != nil {
		return "", err
	}
	return job.Name, c.submit(ctx, job, new(atomic.Int64))
}

// JobName returns the name, or makes one up if there is none.
func JobName(name string) string {
	if name != "" {
		return name
	}
	return "job-" + strings.ToLower(rand.Text()[:10])
}

// prepared fills in the names that are missing, without touching the caller's tasks, and refuses what no daemon can take.
func (j Job) prepared() (Job, error) {
	j.Name = JobName(j.Name)
	tasks := make([]*apiv1.TaskSpec, len(j.Tasks))
	keys := make(map[string]bool, len(j.Tasks))
	for i, t := range j.Tasks {
		t = proto.CloneOf(t)
		t.Job = j.Name
		if t.Key == "" {
			t.Key = fmt.Sprintf("%s-%d", j.Name, i+1)
		}
		if keys[t.Key] {
			return j, fmt.Errorf("running job %s: the key %q is there twice", j.Name, t.Key)
		}
		if size := proto.Size(t); size > maxTask {
			return j, fmt.Errorf("running job %s: task %q has %d bytes, and %d is the most: pass large input as a file", j.Name, t.Key, size, maxTask)
		}
		keys[t.Key] = true
		tasks[i] = t
	}
	j.Tasks = tasks
	return j, nil
}

// maxTask bounds a task, so that it fits into a message with what goes around it.
const maxTask = apiv1.MaxMessage - 64<<10

// submit submits the tasks in their order, and counts those that are accepted.
func (c *Client) submit(ctx context.Context, job Job, accepted *atomic.Int64) error {
	var pause patience
	most := submitChunk
	for rest := job.Tasks; len(rest) > 0; {
		n := chunk(rest, most)
		_, err := c.Tasks.SubmitTasks(ctx, &apiv1.SubmitTasksRequest{Application: job.Application, Namespace: job.Namespace, Tasks: rest[:n]})
		if status.Code(err) == codes.ResourceExhausted {
			most = max(n/2, 1) // all or none are accepted: fewer fit into a queue that is nearly full
		}
		if err != nil {
			if err = pause.wait(ctx, err); err != nil {
				return fmt.Errorf("submitting tasks of job %s: %w", job.Name, err)
			}
			continue
		}
		pause.over()
		accepted.Add(int64(n))
		most = min(2*most, submitChunk)
		rest = rest[n:]
	}
	return nil
}

// chunk is how many tasks fit into one submission of at most so many.
func chunk(tasks []*apiv1.TaskSpec, most int) int {
	bytes := 0
	for i, t := range tasks {
		bytes += proto.Size(t)
		if i == most || (bytes > submitBytes && i > 0) {
			return i
		}
	}
	return len(tasks)
}

// patience waits between tries of what the daemon cannot do just now, longer each time.
type patience struct{ next time.Duration }

// The pauses between tries.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 2 * time.Second
)

// wait returns nil when it is time to try again, and an error if there is no point in trying.
func (p *patience) wait(ctx context.Context, err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
	default:
		return err
	}
	p.next = min(max(2*p.next, shortestPause), longestPause)
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w, while %s", context.Cause(ctx), status.Convert(err).Message())
	case <-time.After(p.next):
		return nil
	}
}

// over begins with short pauses again.
func (p *patience) over() { p.next = 0 }
