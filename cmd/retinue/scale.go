package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newScale(p *program) *cobra.Command {
	var profile string
	cmd := &cobra.Command{
		Use: "scale APP N", Short: "Say how many executors an application shall have",
		Args: takes(2, 2, "an application and a number of executors"),
		RunE: func(cmd *cobra.Command, args []string) error {
			count, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil {
				return usagef("%q is not a number of executors: write a whole number of 0 or more", args[1])
			}
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.scale(cmd.Context(), c, args[0], profile, uint32(count)) })
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "kind of executor; may be left out when there is only one")
	return cmd
}

func (p *program) scale(ctx context.Context, c *client.Client, word, profile string, count uint32) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	app, err := p.application(ctx, c, word)
	if err != nil {
		return err
	}
	key := keyOf(app)
	if profile == "" {
		profiles := app.GetSpec().GetProfiles()
		if len(profiles) != 1 {
			return usagef("application %s has several kinds of executor: say which with --profile (%s)", key, strings.Join(profileNames(app), ", "))
		}
		profile = profiles[0].GetName()
	}
	_, err = c.Applications.ScaleApplication(ctx, &apiv1.ScaleApplicationRequest{
		Application: key.id, Namespace: key.namespace, Targets: map[string]uint32{profile: count},
	})
	if err != nil {
		return err
	}
	p.printf("application %s scaled to %d executors of profile %s\n", key, count, profile)
	return nil
}

func profileNames(app *apiv1.Application) []string {
	names := make([]string, len(app.GetSpec().GetProfiles()))
	for i, s := range app.GetSpec().GetProfiles() {
		names[i] = s.GetName()
	}
	return names
}
