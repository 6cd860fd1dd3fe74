package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newGetExecutors(p *program) *cobra.Command {
	var l listing
	var app string
	cmd := &cobra.Command{
		Use: "executors [ID...]", Aliases: []string{"executor", "execs", "exec"},
		Short: "List executors",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := executorIDs(args)
			if err != nil {
				return err
			}
			if app == "" && len(ids) > 0 {
				return usagef("executors are numbered in each application: say which with --app")
			}
			return p.connected(cmd.Context(), func(c *client.Client) error {
				if l.watch {
					return p.watchExecutors(cmd.Context(), c, l.format, app, ids)
				}
				return p.getExecutors(cmd.Context(), c, l.format, app, ids)
			})
		},
	}
	l.flags(cmd)
	l.watchFlag(cmd)
	cmd.Flags().StringVarP(&app, "app", "a", "", "application whose executors are listed; all when empty")
	return cmd
}

// executorIDs reads numbers of executors.
func executorIDs(words []string) ([]uint64, error) {
	ids := make([]uint64, len(words))
	for i, word := range words {
		id, err := strconv.ParseUint(word, 10, 64)
		if err != nil || id == 0 {
			return nil, usagef("%q is not the number of an executor: `retinue get executors` lists those there are", word)
		}
		ids[i] = id
	}
	return ids, nil
}

// member is an executor of an application.
type member struct {
	app appKey
	*apiv1.Executor
}

// executors lists those of one application whose numbers are given, or all.
func (p *program) executors(ctx context.Context, c *client.Client, app appKey, ids []uint64) ([]member, error) {
	all, err := p.allExecutors(ctx, c, app)
	if err != nil || len(ids) == 0 {
		return all, err
	}
	members := slices.DeleteFunc(all, func(m member) bool { return !slices.Contains(ids, m.GetId()) })
	for _, id := range ids {
		if !slices.ContainsFunc(members, func(m member) bool { return m.GetId() == id }) {
			return nil, notFoundf("application %s has no executor %d: `retinue get executors --app %s` lists those there are", app, id, app)
		}
	}
	return members, nil
}

func (p *program) allExecutors(ctx context.Context, c *client.Client, app appKey) ([]member, error) {
	var all []member
	req := &apiv1.ListExecutorsRequest{Application: app.id, Namespace: app.namespace}
	for {
		got, err := c.Applications.ListExecutors(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, e := range got.GetExecutors() {
			all = append(all, member{app: app, Executor: e})
		}
		if req.PageToken = got.GetNextPageToken(); req.GetPageToken() == "" {
			return all, nil
		}
	}
}

func (p *program) getExecutors(ctx context.Context, c *client.Client, format, app string, ids []uint64) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	apps, err := p.whose(ctx, c, app)
	if err != nil {
		return err
	}
	if format == "json" || format == "yaml" { // where nothing says whose an executor is
		key, onlyErr := only(apps, "executors")
		if onlyErr != nil {
			return onlyErr
		}
		apps = []appKey{key}
	}
	var all []member
	answer := &apiv1.ListExecutorsResponse{}
	for _, key := range apps {
		members, err := p.executors(ctx, c, key, ids)
		if err != nil {
			return err
		}
		for _, m := range members {
			answer.Executors = append(answer.Executors, m.Executor)
		}
		all = append(all, members...)
	}
	return executorOutput(app == "").show(p, format, all, answer, len(ids) == 1)
}

// watchExecutors looks at the executors whenever their application changes.
func (p *program) watchExecutors(ctx context.Context, c *client.Client, format, app string, ids []uint64) error {
	apps, err := p.whose(ctx, c, app)
	if err != nil {
		return err
	}
	key, err := only(apps, "executors")
	if err != nil {
		return err
	}
	w := executorOutput(false).watcher(p, format)
	return p.watched(ctx, func(ctx context.Context, heard func()) error {
		if _, missing := p.foundApp(ctx, c, key.String()); missing != nil {
			return missing // a watch of something that is not there would wait for it
		}
		stream, err := c.Applications.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Application: key.id, Namespace: key.namespace})
		if err != nil {
			return err
		}
		return each(stream, func(msg *apiv1.WatchApplicationsResponse) error {
			heard()
			if len(msg.GetDeleted()) > 0 {
				return notFoundf("application %s was deleted", key)
			}
			members, err := p.allExecutors(ctx, c, key)
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				members = slices.DeleteFunc(members, func(m member) bool { return !slices.Contains(ids, m.GetId()) })
			}
			w.keep(members...)
			return w.show(members...)
		})
	})
}

// executorOutput is how executors are shown; apart says that they are of several applications.
func executorOutput(apart bool) output[member] {
	out := output[member]{
		plural:  "executors",
		name:    func(m member) string { return fmt.Sprintf("executor/%d", m.GetId()) },
		message: func(m member) proto.Message { return m.Executor },
		columns: []column[member]{
			{title: "ID", cell: func(m member) string { return fmt.Sprint(m.GetId()) }},
			{title: "PROFILE", cell: func(m member) string { return m.GetProfile() }},
			{title: "PHASE", cell: func(m member) string { return m.GetPhase() }},
			{title: "READY", cell: executorReady},
			{title: "BUSY", cell: func(m member) string { return fmt.Sprintf("%d/%d", m.GetBusy(), m.GetSlots()) }},
			{title: "DONE", cell: func(m member) string { return fmt.Sprint(m.GetDone()) }},
			{title: "FAILED", cell: func(m member) string { return fmt.Sprint(m.GetFailed()) }},
			{title: "AGE", clock: true, cell: func(m member) string { return age(m.GetAskedAt()) }},
			{title: "POD", wide: true, cell: func(m member) string { return m.GetPodName() }},
			{title: "NODE", wide: true, cell: func(m member) string { return m.GetNode() }},
			{title: "NOTE", wide: true, cell: func(m member) string { return m.GetText() }},
		},
	}
	if apart {
		out.name = func(m member) string { return fmt.Sprintf("executor/%s/%d", m.app, m.GetId()) }
		out.columns = append([]column[member]{{title: "APP", cell: func(m member) string { return m.app.String() }}}, out.columns...)
	}
	return out
}

// executorReady says whether tasks can be given to an executor.
func executorReady(m member) string {
	switch {
	case m.GetDraining():
		return "draining"
	case m.GetRegistered():
		return "yes"
	default:
		return "no"
	}
}
