package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newDelete(p *program) *cobra.Command {
	var timeout time.Duration
	const usual = 5 * time.Minute // executors get their grace period, and the cluster may be slow
	cmd := &cobra.Command{
		Use: "delete [app] APP...", Short: "Delete applications: their tasks end, their executors go, and they are forgotten",
		Example: `  retinue delete app hello
  retinue delete hello other/web`,
		Args: deletable,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error {
				return p.eachApp(cmd.Context(), c, args, func(word string) error { return p.deleteApp(cmd.Context(), c, word, timeout) })
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", usual, "how long to wait until the executors are gone")
	return withKind(cmd, "app", kindOfApp)
}

// deletable wants applications. What else there is goes by commands of its own.
func deletable(cmd *cobra.Command, args []string) error {
	if err := takes(1, 0, "the names of applications")(cmd, args); err != nil || len(args) == 1 {
		return err
	}
	switch word := args[0]; {
	case word == "executor" || slices.Contains(kindOfExecutor, word):
		return usagef("executors are not deleted: `retinue drain APP ID...` lets them finish what they have, `retinue kill executor APP ID...` does not")
	case word == "task" || word == "tasks":
		return usagef("tasks are not deleted: `retinue kill task APP KEY...` cancels them")
	}
	return nil
}

func (p *program) deleteApp(ctx context.Context, c *client.Client, word string, timeout time.Duration) error {
	app, err := p.foundApp(ctx, c, word)
	if err != nil {
		return err
	}
	key := keyOf(app)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = c.Applications.DeleteApplication(ctx, &apiv1.DeleteApplicationRequest{Application: key.id, Namespace: key.namespace})
	if kind, _, _ := client.Explain(err); kind == client.Late {
		return failedf("deleting application %s: its executors were not gone after %v; the same command again goes on waiting", key, timeout)
	}
	if err != nil {
		return err
	}
	p.printf("application %s deleted\n", key)
	return nil
}

// foundApp is one application, within the time of one request.
func (p *program) foundApp(ctx context.Context, c *client.Client, word string) (*apiv1.Application, error) {
	ctx, cancel := p.request(ctx)
	defer cancel()
	return p.application(ctx, c, word)
}
