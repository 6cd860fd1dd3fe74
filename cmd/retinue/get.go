package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newGet(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List applications, executors, tasks or policies",
		Example: `  retinue get apps
  retinue get tasks --app hello --state failed -o wide
  retinue get executors --app hello -w`,
		Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGetApps(p), newGetExecutors(p), newGetTasks(p), newGetPolicies(p))
	return cmd
}

// appKey names an application.
type appKey struct {
	namespace, id string
}

func (k appKey) String() string {
	if k.namespace == "" {
		return k.id
	}
	return k.namespace + "/" + k.id
}

// app is the application that a person means: APP, or NAMESPACE/APP or app/NAMESPACE/APP as the program itself writes it.
func (p *program) app(word string) appKey {
	if rest, ok := strings.CutPrefix(word, "app/"); ok && strings.Contains(rest, "/") {
		word = rest
	}
	if namespace, id, ok := strings.Cut(word, "/"); ok {
		return appKey{namespace: namespace, id: id}
	}
	return appKey{namespace: p.namespace, id: word}
}

func keyOf(a *apiv1.Application) appKey {
	return appKey{namespace: a.GetSpec().GetNamespace(), id: a.GetSpec().GetId()}
}

// whose lists the application that was named, or all there are.
func (p *program) whose(ctx context.Context, c *client.Client, word string) ([]appKey, error) {
	if word != "" {
		return []appKey{p.app(word)}, nil
	}
	apps, err := p.applications(ctx, c, p.namespace)
	keys := make([]appKey, len(apps))
	for i, a := range apps {
		keys[i] = keyOf(a)
	}
	return keys, err
}

// applications lists those of a namespace, or all.
func (p *program) applications(ctx context.Context, c *client.Client, namespace string) ([]*apiv1.Application, error) {
	var all []*apiv1.Application
	req := &apiv1.ListApplicationsRequest{Namespace: namespace}
	for {
		got, err := c.Applications.ListApplications(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, got.GetApplications()...)
		if req.PageToken = got.GetNextPageToken(); req.GetPageToken() == "" {
			return all, nil
		}
	}
}

// only is the one application that was named or that there is; what cannot be mixed needs it.
func only(keys []appKey, what string) (appKey, error) {
	switch len(keys) {
	case 0:
		return appKey{}, notFoundf("there are no applications: make one with `retinue apply`")
	case 1:
		return keys[0], nil
	default:
		return appKey{}, usagef("there are %s: say with --app whose %s", count(len(keys), "application"), what)
	}
}

// each hands over what a stream brings until it ends.
func each[M any](stream interface{ Recv() (M, error) }, do func(M) error) error {
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(msg); err != nil {
			return err
		}
	}
}
