package main

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newKill(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kill", Short: "End executors or tasks at once",
		Example: `  retinue kill executor hello 3
  retinue kill task hello task-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("say what to end: `retinue kill executor %s ID...` or `retinue kill task %s KEY...`", args[0], args[0])
			}
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	executor := releasing(p, "executor APP ID...", "Kill executors; the tasks on them are tried again elsewhere", "killed", true)
	executor.Aliases = kindOfExecutor
	cmd.AddCommand(executor, newKillTask(p))
	return cmd
}

func newDrain(p *program) *cobra.Command {
	return withKind(releasing(p, "drain [executor] APP ID...", "Let executors finish what they have, and then go", "draining", false), "executor", kindOfExecutor)
}

// releasing is a command that lets executors go.
func releasing(p *program, use, short, done string, kill bool) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: takes(2, 0, "an application and the numbers of executors"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := executorIDs(args[1:])
			if err != nil {
				return err
			}
			return p.connected(cmd.Context(), func(c *client.Client) error {
				ctx, cancel := p.request(cmd.Context())
				defer cancel()
				key := p.app(args[0])
				_, err := c.Applications.ReleaseExecutors(ctx, &apiv1.ReleaseExecutorsRequest{
					Application: key.id, Namespace: key.namespace, Executors: ids, Kill: kill, Reason: reason,
				})
				if err != nil {
					return err
				}
				for _, id := range ids {
					p.printf("executor %d of application %s %s\n", id, key, done)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at it later")
	return cmd
}

func newKillTask(p *program) *cobra.Command {
	var job string
	var all bool
	cmd := &cobra.Command{
		Use: "task APP [KEY...]", Aliases: []string{"tasks"},
		Short: "Cancel tasks: those named, those of a job, or all",
		Args:  takes(1, 0, "an application, and the keys of tasks, or --job, or --all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			named := 0
			for _, is := range []bool{len(args) > 1, job != "", all} {
				if is {
					named++
				}
			}
			if named != 1 {
				return usagef("say which tasks to cancel: by their keys, or with --job, or with --all, and not by two of these")
			}
			return p.connected(cmd.Context(), func(c *client.Client) error {
				return p.cancelTasks(cmd.Context(), c, args[0], &apiv1.CancelTasksRequest{Keys: args[1:], Job: job, All: all})
			})
		},
	}
	cmd.Flags().StringVar(&job, "job", "", "cancel the tasks of this job")
	cmd.Flags().BoolVar(&all, "all", false, "cancel all tasks of the application")
	return cmd
}

func (p *program) cancelTasks(ctx context.Context, c *client.Client, word string, req *apiv1.CancelTasksRequest) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	key := p.app(word)
	req.Application, req.Namespace = key.id, key.namespace
	got, err := c.Tasks.CancelTasks(ctx, req)
	if err != nil {
		return err
	}
	if got.GetCount() == 0 && len(req.GetKeys()) > 0 {
		return notFoundf("application %s has no such task that has not ended: `retinue get tasks --app %s` lists those there are", key, key)
	}
	p.printf("%s of application %s cancelled\n", count(got.GetCount(), "task"), key)
	return nil
}
