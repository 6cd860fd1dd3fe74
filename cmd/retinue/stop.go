package main

import (
	"context"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newStop(p *program) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "stop [app] APP...", Short: "End the work of applications, for good; what they did can still be looked at",
		Args: takes(1, 0, "the names of applications"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error {
				for _, word := range args {
					if err := p.stop(cmd.Context(), c, word, keep); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-executors", false, "leave the executors' pods where they are")
	return withKind(cmd, "app", kindOfApp)
}

func (p *program) stop(ctx context.Context, c *client.Client, word string, keep bool) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	app, err := p.application(ctx, c, word)
	if err != nil {
		return err
	}
	key := keyOf(app)
	req := &apiv1.StopApplicationRequest{Application: key.id, Namespace: key.namespace, KeepExecutors: keep}
	if _, err := c.Applications.StopApplication(ctx, req); err != nil {
		return err
	}
	p.printf("application %s stopped\n", key)
	return nil
}
