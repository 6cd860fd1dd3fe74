package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// taskFilter says which tasks are meant.
type taskFilter struct {
	app, job string
	keys     []string
	states   []apiv1.TaskState
	output   bool // with what they wrote
}

func newGetTasks(p *program) *cobra.Command {
	var l listing
	var f taskFilter
	var states []string
	cmd := &cobra.Command{
		Use: "tasks [KEY...]", Aliases: []string{"task"},
		Short: "List tasks",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keys = args
			var err error
			if f.states, err = taskStates(states); err != nil {
				return err
			}
			return p.connected(cmd.Context(), func(c *client.Client) error {
				if l.watch {
					return p.watchTasks(cmd.Context(), c, l.format, f)
				}
				return p.getTasks(cmd.Context(), c, l.format, f)
			})
		},
	}
	l.flags(cmd)
	l.watchFlag(cmd)
	cmd.Flags().StringVarP(&f.app, "app", "a", "", "application whose tasks are listed; all when empty")
	cmd.Flags().StringVar(&f.job, "job", "", "only tasks of this job")
	cmd.Flags().StringSliceVar(&states, "state", nil, "only tasks in these states: "+strings.Join(stateNames(), ", "))
	return cmd
}

// stateName is a state as people write it.
func stateName(s apiv1.TaskState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "TASK_STATE_"))
}

func stateNames() []string {
	var names []string
	for s := apiv1.TaskState_TASK_STATE_QUEUED; s <= apiv1.TaskState_TASK_STATE_EXPIRED; s++ {
		names = append(names, stateName(s))
	}
	return names
}

func taskStates(words []string) ([]apiv1.TaskState, error) {
	var states []apiv1.TaskState
	for _, word := range words {
		number, known := apiv1.TaskState_value["TASK_STATE_"+strings.ToUpper(word)]
		if !known || number == 0 {
			return nil, usagef("--state %s is not a state of a task%s", word, suggest(word, stateNames()))
		}
		states = append(states, apiv1.TaskState(number))
	}
	return states, nil
}

// unit is a task of an application.
type unit struct {
	app appKey
	*apiv1.Task
}

// pageSize is how many tasks are asked for at once.
const pageSize = 1000

// tasks hands over the pages of an application's tasks.
func (p *program) tasks(ctx context.Context, c *client.Client, app appKey, f taskFilter, page func([]*apiv1.Task) error) error {
	req := &apiv1.ListTasksRequest{
		Application: app.id, Namespace: app.namespace, Job: f.job, Keys: f.keys, States: f.states, PageSize: pageSize, WithOutput: f.output,
	}
	for {
		got, err := p.taskPage(ctx, c, req)
		if err != nil {
			return err
		}
		if err := page(got.GetTasks()); err != nil {
			return err
		}
		if req.PageToken = got.GetNextPageToken(); req.GetPageToken() == "" {
			return nil
		}
	}
}

func (p *program) taskPage(ctx context.Context, c *client.Client, req *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	ctx, cancel := p.request(ctx)
	defer cancel()
	return c.Tasks.ListTasks(ctx, req)
}

func (p *program) getTasks(ctx context.Context, c *client.Client, format string, f taskFilter) error {
	apps, err := p.tasksOf(ctx, c, f.app, format)
	if err != nil {
		return err
	}
	var all []unit
	answer := &apiv1.ListTasksResponse{}
	for _, app := range apps {
		err := p.tasks(ctx, c, app, f, func(tasks []*apiv1.Task) error {
			for _, t := range tasks {
				all = append(all, unit{app: app, Task: t})
			}
			answer.Tasks = append(answer.Tasks, tasks...)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, key := range f.keys {
		if len(f.states) == 0 && !slices.ContainsFunc(all, func(u unit) bool { return u.GetKey() == key }) {
			return notFoundf("there is no task %s: `retinue get tasks` lists those there are", clean(key))
		}
	}
	return taskOutput(f.app == "").show(p, format, all, answer, len(f.keys) == 1)
}

// tasksOf lists the applications whose tasks are meant.
func (p *program) tasksOf(ctx context.Context, c *client.Client, app, format string) ([]appKey, error) {
	ctx, cancel := p.request(ctx)
	defer cancel()
	apps, err := p.whose(ctx, c, app)
	if err != nil || (format != "json" && format != "yaml") {
		return apps, err
	}
	key, err := only(apps, "tasks") // nothing in a task says whose it is
	return []appKey{key}, err
}

func (p *program) watchTasks(ctx context.Context, c *client.Client, format string, f taskFilter) error {
	apps, err := p.whose(ctx, c, f.app)
	if err != nil {
		return err
	}
	app, err := only(apps, "tasks")
	if err != nil {
		return err
	}
	w := taskOutput(false).watcher(p, format)
	return p.watched(ctx, func(ctx context.Context, heard func()) error {
		req := &apiv1.WatchTasksRequest{Application: app.id, Namespace: app.namespace, Job: f.job, WithoutOutput: true}
		stream, err := c.Tasks.WatchTasks(ctx, req)
		if err != nil {
			return err
		}
		var there []unit // until all are listed
		listed := false
		return each(stream, func(msg *apiv1.WatchTasksResponse) error {
			heard()
			if err := w.show(f.of(app, msg.GetTasks())...); err != nil {
				return err
			}
			if !listed {
				there = append(there, taskFilter{keys: f.keys}.of(app, msg.GetTasks())...) // one that changed its state is not gone
			}
			if msg.GetListed() {
				w.keep(there...)
				there, listed = nil, true
			}
			return nil
		})
	})
}

// of picks those of an application's tasks that are meant by what a watch cannot ask for.
func (f taskFilter) of(app appKey, tasks []*apiv1.Task) []unit {
	var units []unit
	for _, t := range tasks {
		if (len(f.keys) == 0 || slices.Contains(f.keys, t.GetKey())) && (len(f.states) == 0 || slices.Contains(f.states, t.GetState())) {
			units = append(units, unit{app: app, Task: t})
		}
	}
	return units
}

// taskOutput is how tasks are shown; apart says that they are of several applications.
func taskOutput(apart bool) output[unit] {
	out := output[unit]{
		plural:  "tasks",
		name:    func(u unit) string { return "task/" + u.GetKey() },
		message: func(u unit) proto.Message { return u.Task },
		columns: []column[unit]{
			{title: "KEY", cell: func(u unit) string { return u.GetKey() }},
			{title: "JOB", cell: func(u unit) string { return u.GetJob() }},
			{title: "STATE", cell: func(u unit) string { return stateName(u.GetState()) }},
			{title: "ATTEMPT", cell: func(u unit) string { return fmt.Sprint(u.GetAttempt()) }},
			{title: "EXECUTOR", cell: func(u unit) string { return numberOrNothing(u.GetExecutor()) }},
			{title: "TOOK", cell: taskTook},
			{title: "AGE", clock: true, cell: func(u unit) string { return age(u.GetAcceptedAt()) }},
			{title: "LEFT", wide: true, clock: true, cell: func(u unit) string { return timeLeft(u.Task) }},
			{title: "PROFILE", wide: true, cell: func(u unit) string { return u.GetProfile() }},
			{title: "EXIT", wide: true, cell: taskExit},
			{title: "COMMAND", wide: true, cell: func(u unit) string { return strings.Join(u.GetCommand(), " ") }},
			{title: "NOTE", wide: true, cell: func(u unit) string { return u.GetResult().GetText() }},
		},
	}
	if apart {
		out.name = func(u unit) string { return fmt.Sprintf("task/%s/%s", u.app, u.GetKey()) }
		out.columns = append([]column[unit]{{title: "APP", cell: func(u unit) string { return u.app.String() }}}, out.columns...)
	}
	return out
}

func numberOrNothing(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// timeLeft is how long a task has until its deadline, empty if it has none or has ended.
func timeLeft(t *apiv1.Task) string {
	if t.GetDeadlineAt() == nil || t.GetState() >= apiv1.TaskState_TASK_STATE_SUCCEEDED {
		return ""
	}
	return short(time.Until(t.GetDeadlineAt().AsTime()))
}

// tried is true if an attempt's end is known: a task may also end without any.
func tried(t *apiv1.Task) bool {
	return t.GetResult().GetOutcome() != apiv1.Outcome_OUTCOME_UNSPECIFIED
}

func taskTook(u unit) string {
	if !tried(u.Task) {
		return ""
	}
	return short(u.GetResult().GetTook().AsDuration())
}

// taskExit is the exit code of a task's newest attempt that ended.
func taskExit(u unit) string {
	if !tried(u.Task) {
		return ""
	}
	return fmt.Sprint(u.GetResult().GetExitCode())
}
