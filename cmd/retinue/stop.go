package main

import (
	"context"
	"errors"

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
				return p.eachApp(cmd.Context(), c, args, func(word string) error { return p.stop(cmd.Context(), c, word, keep) })
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

// eachApp does something to each of the applications. One that is not there does not keep it from the others.
func (p *program) eachApp(ctx context.Context, c *client.Client, words []string, do func(word string) error) error {
	var missing []error
	for _, word := range words {
		err := do(word)
		if err != nil {
			err = p.explain(err, func() bool { return p.answers(context.WithoutCancel(ctx), c) })
		}
		switch {
		case exitCode(err) == exitNotFound:
			missing = append(missing, err)
		case err != nil:
			return errors.Join(append([]error{err}, missing...)...) // the exit code is that of the first
		}
	}
	return errors.Join(missing...)
}

// working refuses an application that has stopped, which does nothing any more.
func working(app *apiv1.Application) error {
	if !app.GetStatus().GetStopped() {
		return nil
	}
	key := keyOf(app)
	return failedf("application %s has stopped, for good: `retinue delete %s` makes room for a new one of that name", key, key)
}
