package main

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newLogs(p *program) *cobra.Command {
	var follow bool
	var tail int64
	cmd := &cobra.Command{
		Use: "logs [executor] APP ID", Short: "Print the log of an executor, or what a task wrote",
		Example: `  retinue logs hello 3 --tail 20 -f
  retinue logs task hello task-7`,
		Args: takes(2, 2, "an application and the number of one of its executors"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := executorIDs(args[1:])
			if err != nil {
				return usagef("%w; if it is the key of a task: `retinue logs task %s %s`", err, args[0], args[1])
			}
			if tail < 0 {
				return usagef("--tail %d is not a number of lines: write 0, for all, or more", tail)
			}
			key := p.app(args[0])
			req := &apiv1.ReadExecutorLogRequest{Application: key.id, Namespace: key.namespace, Executor: ids[0], Follow: follow, TailLines: tail}
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.executorLog(cmd.Context(), c, req) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until interrupted")
	cmd.Flags().Int64Var(&tail, "tail", 0, "only this many lines from the end; all when 0")
	cmd.AddCommand(newTaskLog(p))
	return withKind(cmd, "executor", kindOfExecutor)
}

func (p *program) executorLog(ctx context.Context, c *client.Client, req *apiv1.ReadExecutorLogRequest) error {
	stream, err := c.Applications.ReadExecutorLog(ctx, req)
	if err != nil {
		return err
	}
	return each(stream, func(msg *apiv1.ReadExecutorLogResponse) error {
		_, err := p.out.Write(msg.GetChunk())
		return err
	})
}

func newTaskLog(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "task APP KEY", Short: "Print what a task wrote: its output here, the end of its standard error there",
		Args: takes(2, 2, "an application and the key of one of its tasks"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.taskLog(cmd.Context(), c, args[0], args[1]) })
		},
	}
}

// taskLog prints a task's output on the standard output and the end of its errors on the standard error.
func (p *program) taskLog(ctx context.Context, c *client.Client, app, key string) error {
	t, err := p.task(ctx, c, app, key, true)
	if err != nil {
		return err
	}
	result := t.GetResult()
	if result == nil {
		return failedf("task %s is %s, and no attempt of it has ended: what it wrote comes with its end", clean(key), stateName(t.GetState()))
	}
	if _, err = p.out.Write(result.GetOutput()); err != nil {
		return err
	}
	_, err = p.err.Write(result.GetErrors())
	return err
}
