package main

import (
	"context"
	"regexp"
	"strconv"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// namesAnother is the daemon's sentence about a task whose key is that of another one.
var namesAnother = regexp.MustCompile(`\(key ("(?:[^"\\]|\\.)*")\): the key names another task`)

// refusal explains why a job was refused: for a key that is taken, by whom.
func (p *program) refusal(ctx context.Context, c *client.Client, job client.Job, err error) error {
	_, text, _ := client.Explain(err)
	found := namesAnother.FindStringSubmatch(text)
	if found == nil {
		return blamed(err)
	}
	key, err := strconv.Unquote(found[1])
	if err != nil {
		return usagef("%s", text)
	}
	ctx, cancel := p.request(ctx)
	defer cancel()
	got, err := c.Tasks.ListTasks(ctx, &apiv1.ListTasksRequest{Application: job.Application, Namespace: job.Namespace, Keys: []string{key}})
	if err != nil || len(got.GetTasks()) != 1 { // then that much must do
		return usagef("%s", text)
	}
	return taken(got.GetTasks()[0], job.Name)
}

// taken says whose key it is that a job's task has. A job that is picked up again must be what it was.
func taken(t *apiv1.Task, job string) error {
	key, owner := clean(t.GetKey()), clean(t.GetJob())
	const rule = "a key is unique in the application for as long as its task is remembered"
	switch t.GetJob() {
	case "":
		return usagef("the key %q is that of a task without a job (%s): %s: choose another key", key, stateName(t.GetState()), rule)
	case job:
		return usagef("job %s has another task with the key %q already (%s): %s: choose another name with --job, or submit the very same tasks to pick them up",
			owner, key, stateName(t.GetState()), rule)
	default:
		return usagef("the key %q is that of a task of job %s already (%s): %s: pick that job up with --job %s, or choose other keys",
			key, owner, stateName(t.GetState()), rule, owner)
	}
}
