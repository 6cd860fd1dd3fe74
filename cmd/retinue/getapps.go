package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newGetApps(p *program) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "apps [APP...]", Aliases: []string{"app", "applications", "application"},
		Short: "List applications",
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.watch && len(args) > 1 {
				return usagef("one application or all can be watched, not %d", len(args))
			}
			return p.connected(cmd.Context(), func(c *client.Client) error {
				if l.watch {
					return p.watchApps(cmd.Context(), c, l.format, args)
				}
				return p.getApps(cmd.Context(), c, l.format, args)
			})
		},
	}
	l.flags(cmd)
	l.watchFlag(cmd)
	return cmd
}

func (p *program) getApps(ctx context.Context, c *client.Client, format string, names []string) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	answer := &apiv1.ListApplicationsResponse{}
	for _, name := range names {
		key := p.app(name)
		got, err := c.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: key.id, Namespace: key.namespace})
		if err != nil {
			return err
		}
		answer.Applications = append(answer.Applications, got.GetApplication())
	}
	if len(names) == 0 {
		var err error
		if answer.Applications, err = p.applications(ctx, c, p.namespace); err != nil {
			return err
		}
	}
	return appOutput.show(p, format, answer.GetApplications(), answer, len(names) == 1)
}

func (p *program) watchApps(ctx context.Context, c *client.Client, format string, names []string) error {
	key := appKey{namespace: p.namespace}
	if len(names) == 1 {
		key = p.app(names[0])
	}
	w := appOutput.watcher(p, format)
	return p.watched(ctx, func(ctx context.Context, heard func()) error {
		if len(w.names()) > 0 { // it was cut: what went meanwhile is not told again
			there, err := p.applications(ctx, c, key.namespace)
			if err != nil {
				return err
			}
			w.keep(there...)
		}
		stream, err := c.Applications.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Application: key.id, Namespace: key.namespace})
		if err != nil {
			return err
		}
		return each(stream, func(msg *apiv1.WatchApplicationsResponse) error {
			heard()
			if err := w.show(msg.GetApplications()...); err != nil {
				return err
			}
			for _, deleted := range msg.GetDeleted() {
				w.gone("app/" + deleted)
			}
			return nil
		})
	})
}

// appOutput is how applications are shown.
var appOutput = output[*apiv1.Application]{
	plural:  "applications",
	name:    func(a *apiv1.Application) string { return "app/" + keyOf(a).String() },
	message: func(a *apiv1.Application) proto.Message { return a },
	columns: []column[*apiv1.Application]{
		{title: "NAMESPACE", cell: func(a *apiv1.Application) string { return a.GetSpec().GetNamespace() }},
		{title: "NAME", cell: func(a *apiv1.Application) string { return a.GetSpec().GetId() }},
		{title: "STATUS", cell: appState},
		{title: "READY", cell: func(a *apiv1.Application) string {
			f := fleetOf(a)
			return fmt.Sprintf("%d/%d", f.GetRegistered(), f.GetTarget())
		}},
		{title: "BUSY", cell: func(a *apiv1.Application) string { return fmt.Sprint(fleetOf(a).GetBusy()) }},
		{title: "STARTING", wide: true, cell: func(a *apiv1.Application) string { return fmt.Sprint(fleetOf(a).GetPending()) }},
		{title: "ENDING", wide: true, cell: func(a *apiv1.Application) string { return fmt.Sprint(fleetOf(a).GetTerminating()) }},
		{title: "QUEUED", cell: func(a *apiv1.Application) string { return fmt.Sprint(a.GetStatus().GetTasks().GetQueued()) }},
		{title: "RUNNING", cell: func(a *apiv1.Application) string {
			return fmt.Sprint(a.GetStatus().GetTasks().GetLaunched() + a.GetStatus().GetTasks().GetRunning())
		}},
		{title: "DONE", cell: func(a *apiv1.Application) string { return fmt.Sprint(a.GetStatus().GetTasks().GetSucceeded()) }},
		{title: "FAILED", cell: func(a *apiv1.Application) string { return fmt.Sprint(a.GetStatus().GetTasks().GetFailed()) }},
		{title: "POLICY", cell: func(a *apiv1.Application) string { return a.GetStatus().GetPolicy().GetPolicy() }},
		{title: "MODE", wide: true, cell: func(a *apiv1.Application) string { return a.GetStatus().GetMode() }},
		{title: "DIGEST", wide: true, cell: func(a *apiv1.Application) string { return shortDigest(a.GetStatus().GetPolicy().GetDigest()) }},
		{title: "AGE", clock: true, cell: func(a *apiv1.Application) string { return age(a.GetStatus().GetCreatedAt()) }},
		{title: "NOTE", wide: true, cell: appNote},
	},
}

// fleetOf sums the profiles of an application. Pending counts all that are not there yet.
func fleetOf(a *apiv1.Application) *apiv1.ProfileStatus {
	sum := &apiv1.ProfileStatus{}
	for _, s := range a.GetStatus().GetProfiles() {
		sum.Target += s.GetTarget()
		sum.Registered += s.GetRegistered()
		sum.Busy += s.GetBusy()
		sum.Pending += s.GetRequested() + s.GetPending()
		sum.Terminating += s.GetTerminating()
	}
	return sum
}

// condition is a condition of an application by its type; one that is not there does not hold.
func condition(a *apiv1.Application, kind string) *apiv1.Condition {
	for _, c := range a.GetStatus().GetConditions() {
		if c.GetType() == kind {
			return c
		}
	}
	return nil
}

// appState is an application's conditions in a word.
func appState(a *apiv1.Application) string {
	switch {
	case a.GetStatus().GetStopped():
		return "Stopped"
	case condition(a, "Ready").GetStatus():
		return "Ready"
	case condition(a, "Limited").GetStatus():
		return "Limited"
	default:
		return "Progressing"
	}
}

// appNote says what keeps an application from being ready.
func appNote(a *apiv1.Application) string {
	if c := condition(a, "Limited"); c.GetStatus() {
		return c.GetMessage()
	}
	if c := condition(a, "Ready"); c != nil && !c.GetStatus() {
		return c.GetMessage()
	}
	return ""
}

// shortDigest is as much of a digest as tells modules apart.
func shortDigest(digest string) string {
	const most = len("sha256:") + 12
	if len(digest) > most {
		return digest[:most]
	}
	return digest
}
