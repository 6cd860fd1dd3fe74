package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newGetPolicies(p *program) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "policies [NAME|DIGEST...]", Aliases: []string{"policy"},
		Short: "List the policies that the daemon has",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.getPolicies(cmd.Context(), c, l.format, args) })
		},
	}
	l.flags(cmd)
	return cmd
}

func (p *program) getPolicies(ctx context.Context, c *client.Client, format string, names []string) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	answer, err := c.Policies.ListPolicies(ctx, &apiv1.ListPoliciesRequest{})
	if err != nil {
		return err
	}
	is := func(name string) func(*apiv1.Policy) bool {
		return func(x *apiv1.Policy) bool { return x.GetName() == name || x.GetDigest() == name }
	}
	for _, name := range names {
		if !slices.ContainsFunc(answer.GetPolicies(), is(name)) {
			return notFoundf("the daemon has no policy %s: `retinue get policies` lists those it has", clean(name))
		}
	}
	if len(names) > 0 {
		answer.Policies = slices.DeleteFunc(answer.GetPolicies(), func(x *apiv1.Policy) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return is(name)(x) })
		})
	}
	return policyOutput.show(p, format, answer.GetPolicies(), answer, len(names) == 1)
}

// policyOutput is how policies are shown.
var policyOutput = output[*apiv1.Policy]{
	plural:  "policies",
	name:    func(x *apiv1.Policy) string { return "policy/" + x.GetName() },
	message: func(x *apiv1.Policy) proto.Message { return x },
	columns: []column[*apiv1.Policy]{
		{title: "NAME", cell: func(x *apiv1.Policy) string { return x.GetName() }},
		{title: "VERSION", cell: func(x *apiv1.Policy) string { return x.GetVersion() }},
		{title: "DIGEST", cell: func(x *apiv1.Policy) string { return shortDigest(x.GetDigest()) }},
		{title: "BYTES", cell: func(x *apiv1.Policy) string { return fmt.Sprint(x.GetSizeBytes()) }},
		{title: "SHIPPED", cell: func(x *apiv1.Policy) string { return yesNo(x.GetShipped()) }},
		{title: "APPS", cell: func(x *apiv1.Policy) string { return fmt.Sprint(len(x.GetApplications())) }},
		{title: "HOOKS", wide: true, cell: func(x *apiv1.Policy) string { return strings.Join(x.GetHooks(), ",") }},
		{title: "DESCRIPTION", wide: true, cell: func(x *apiv1.Policy) string { return x.GetDescription() }},
	},
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
