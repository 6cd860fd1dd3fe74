package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newScale(p *program) *cobra.Command {
	var profile string
	cmd := &cobra.Command{
		Use: "scale [app] APP N", Short: "Say how many executors an application shall have",
		Long: `Sets the target of a profile: as many executors are kept as that, within the profile's minimum and maximum.

A lower target ends no executor that runs: idle ones stay until "retinue drain" or the profile's releaseIdle lets them go.
In mode scale the policy sizes the fleet; the target is kept for when the application is in mode follow again.
With dynamicAllocation the target goes on following the tasks that wait.`,
		Example: `  retinue scale hello 3
  retinue scale hello 0 --profile big`,
		Args: takes(2, 2, "an application and a number of executors"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil {
				return usagef("%q is not a number of executors: write a whole number of 0 or more", args[1])
			}
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.scale(cmd.Context(), c, args[0], profile, uint32(n)) })
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "kind of executor; may be left out when there is only one")
	return withKind(cmd, "app", kindOfApp)
}

func (p *program) scale(ctx context.Context, c *client.Client, word, profile string, n uint32) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	app, err := p.application(ctx, c, word)
	if err != nil {
		return err
	}
	if err = working(app); err != nil {
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
	scaled, err := c.Applications.ScaleApplication(ctx, &apiv1.ScaleApplicationRequest{
		Application: key.id, Namespace: key.namespace, Targets: map[string]uint32{profile: n},
	})
	if err != nil {
		return err
	}
	kept := held(scaled.GetApplication(), profile, n)
	p.printf("application %s scaled to %s of profile %s%s\n", key, count(kept, "executor"), profile, meanwhile(scaled.GetApplication(), profile, kept))
	if kept != n {
		fmt.Fprintf(p.err, "retinue: %d is out of the bounds of profile %s, which has %s: `retinue apply` changes them\n",
			n, profile, bounds(profileOf(scaled.GetApplication(), profile)))
	}
	return nil
}

// held is how many executors are kept of a profile that was scaled to n: its bounds hold whatever is asked for.
func held(app *apiv1.Application, profile string, n uint32) uint32 {
	s := profileOf(app, profile)
	if s.GetMax() > 0 {
		n = min(n, s.GetMax())
	}
	return max(n, s.GetMin())
}

// meanwhile says what a target of n does not do to a profile: in mode scale nothing now, and idle executors stay unless releaseIdle ends them.
func meanwhile(app *apiv1.Application, profile string, n uint32) string {
	switch live := profileOf(app, profile).GetRunning(); {
	case app.GetStatus().GetMode() == "scale":
		return "; the policy decides in mode scale: the target is kept for mode follow"
	case live > n && releaseIdle(app, profile) == 0:
		return fmt.Sprintf("; %d live: idle executors stay until `retinue drain` or the profile's releaseIdle lets them go", live)
	}
	return ""
}

// releaseIdle is after how long an idle executor of a profile is let go; 0 is never.
func releaseIdle(app *apiv1.Application, profile string) time.Duration {
	for _, spec := range app.GetSpec().GetProfiles() {
		if spec.GetName() == profile {
			return spec.GetReleaseIdle().AsDuration()
		}
	}
	return 0
}

// profileOf is the status of a profile, or nil.
func profileOf(app *apiv1.Application, name string) *apiv1.ProfileStatus {
	for _, s := range app.GetStatus().GetProfiles() {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}

// bounds are a profile's minimum and maximum.
func bounds(s *apiv1.ProfileStatus) string {
	if s.GetMax() == 0 {
		return fmt.Sprintf("a minimum of %d", s.GetMin())
	}
	return fmt.Sprintf("a minimum of %d and a maximum of %d", s.GetMin(), s.GetMax())
}

func profileNames(app *apiv1.Application) []string {
	names := make([]string, len(app.GetSpec().GetProfiles()))
	for i, s := range app.GetSpec().GetProfiles() {
		names[i] = s.GetName()
	}
	return names
}
