package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newPolicy(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Load, bind, look at and test policies",
		Args:  noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyLoad(p), newPolicyStatus(p), newPolicyRollback(p), newPolicyTest(p))
	return cmd
}

// binding is what `policy load` is told beside the policy.
type binding struct {
	name       string
	app        string
	forDefault bool
	mode       string
	settings   string
}

func newPolicyLoad(p *program) *cobra.Command {
	var b binding
	cmd := &cobra.Command{
		Use:   "load POLICY",
		Short: "Load a policy and let it decide",
		Long: `POLICY is a module's file (.wasm, or .wasm.gz), or the name or sha256:DIGEST of a policy that the daemon has.
A file is checked and compiled by the daemon beside the policy that decides now; nothing changes if it is refused.
With --app it decides for that application from its next decision on, with --default for all that have no binding of their own.`,
		Example: `  retinue policy load elastic --app web --mode scale
  retinue policy load my.wasm --app web --settings '{"idle":"1m"}'`,
		Args: exactly("load", "a policy: a file, a name or a digest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.loadPolicy(cmd.Context(), c, args[0], b) })
		},
	}
	cmd.Flags().StringVar(&b.name, "name", "", "name under which a file is kept; the one in its manifest when empty")
	cmd.Flags().StringVarP(&b.app, "app", "a", "", "application for which it decides")
	cmd.Flags().BoolVar(&b.forDefault, "default", false, "let it decide for all applications that have no binding of their own")
	cmd.Flags().StringVar(&b.mode, "mode", "", "how far its word goes: follow or scale; unchanged when empty")
	cmd.Flags().StringVar(&b.settings, "settings", "", "settings: a JSON object, or @FILE")
	exclude(cmd, [2]string{"app", "default"})
	return cmd
}

// exactly wants one argument and says what it should be.
func exactly(command, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usagef("%s takes %s, and got %s", command, what, count(len(args), "argument"))
	}
}

func (p *program) loadPolicy(ctx context.Context, c *client.Client, policy string, b binding) error {
	if b.app == "" && !b.forDefault && (b.mode != "" || b.settings != "") {
		return usagef("--mode and --settings belong to a binding: say for whom with --app or --default")
	}
	settings, err := argument(b.settings)
	if err != nil {
		return err
	}
	module, err := os.ReadFile(policy)
	switch {
	case err == nil:
		loaded, refused := upload(ctx, c, b.name, module)
		if refused != nil {
			return refused
		}
		p.printf("policy %s loaded: %s, %s\n", loaded.GetName(), loaded.GetDigest(), count(loaded.GetSizeBytes(), "byte"))
		policy = loaded.GetDigest()
	case looksLikeFile(policy) || !errors.Is(err, fs.ErrNotExist):
		return usagef("reading the policy: %w", err)
	default:
		if unknown := p.hasPolicy(ctx, c, policy); unknown != nil {
			return unknown
		}
		if b.app == "" && !b.forDefault {
			return usagef("the daemon has policy %q already, and nothing says for whom it shall decide: add --app or --default", policy)
		}
	}
	if b.app == "" && !b.forDefault {
		return nil
	}
	app := p.app(b.app)
	bound, err := c.Policies.BindPolicy(ctx, &apiv1.BindPolicyRequest{
		Application: app.id, Namespace: app.namespace, Mode: b.mode, Binding: &apiv1.PolicyBinding{Policy: policy, Settings: settings},
	})
	if err != nil {
		return err
	}
	p.sayBound(b.app, bound.GetPolicy(), bound.GetReplaced())
	return nil
}

// hasPolicy returns an error if the daemon has no policy of a name or digest. Those that are shipped are there even before they are compiled.
func (p *program) hasPolicy(ctx context.Context, c *client.Client, name string) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	list, err := c.Policies.ListPolicies(ctx, &apiv1.ListPoliciesRequest{})
	if err != nil {
		return err
	}
	named := func(x *apiv1.Policy) bool { return x.GetName() == name || x.GetDigest() == name }
	shipped := func(m modules.Module) bool { return m.Name == name || m.Digest == name }
	if slices.ContainsFunc(list.GetPolicies(), named) || slices.ContainsFunc(modules.Shipped(), shipped) {
		return nil
	}
	return notFoundf("there is no policy %s: it is neither a file nor one of those that `retinue get policies` lists", clean(name))
}

func (p *program) sayBound(app string, policy *apiv1.Policy, replaced string) {
	whom := "all applications without a binding of their own"
	if app != "" {
		whom = "application " + app
	}
	if replaced == "" || replaced == policy.GetDigest() {
		p.printf("policy %s (%s) decides for %s\n", policy.GetName(), policy.GetDigest(), whom)
		return
	}
	p.printf("policy %s (%s) decides for %s from now on; before it %s did\n", policy.GetName(), policy.GetDigest(), whom, replaced)
}

// looksLikeFile reports whether a word can only be meant as a file.
func looksLikeFile(word string) bool {
	return strings.ContainsAny(word, `/\`) || strings.HasSuffix(word, ".wasm") || strings.HasSuffix(word, ".gz")
}

// argument is what was written, or what stands in the file that @ names.
func argument(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return "", usagef("reading the settings: %v", err)
	}
	return string(content), nil
}

// upload sends a module in pieces.
func upload(ctx context.Context, c *client.Client, name string, module []byte) (*apiv1.Policy, error) {
	stream, err := c.Policies.LoadPolicy(ctx)
	if err != nil {
		return nil, err
	}
	const piece = 1 << 20
	for first := true; first || len(module) > 0; first = false {
		n := min(piece, len(module))
		err = stream.Send(&apiv1.LoadPolicyRequest{Name: name, Chunk: module[:n]})
		if errors.Is(err, io.EOF) { // refused already; the answer says why
			break
		}
		if err != nil {
			return nil, err
		}
		module = module[n:]
	}
	answer, err := stream.CloseAndRecv()
	if err != nil {
		return nil, err
	}
	return answer.GetPolicy(), nil
}

func newPolicyStatus(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [APP]", Short: "Say who decides for an application, or for all, and how it goes",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("status takes the name of one application, or none for all, and got %s", count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error {
				ctx, cancel := p.request(cmd.Context())
				defer cancel()
				if len(args) == 0 {
					return p.policyStatuses(ctx, c)
				}
				app := p.app(args[0])
				got, err := c.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: app.id, Namespace: app.namespace})
				if err != nil {
					return err
				}
				p.printf("%s", policyStatus(got.GetApplication()))
				return nil
			})
		},
	}
	return withKind(cmd, "app", kindOfApp)
}

// policyStatuses shows in a line for each application who decides for it.
func (p *program) policyStatuses(ctx context.Context, c *client.Client) error {
	apps, err := p.applications(ctx, c, p.namespace)
	if err != nil {
		return err
	}
	if len(apps) == 0 {
		return notFoundf("there are no applications: make one with `retinue apply`")
	}
	p.printf("%s", newTable([]column[*apiv1.Application]{
		{title: "APPLICATION", cell: func(a *apiv1.Application) string { return keyOf(a).String() }},
		{title: "POLICY", cell: func(a *apiv1.Application) string { return a.GetStatus().GetPolicy().GetPolicy() }},
		{title: "DIGEST", cell: func(a *apiv1.Application) string { return shortDigest(a.GetStatus().GetPolicy().GetDigest()) }},
		{title: "MODE", cell: func(a *apiv1.Application) string { return a.GetStatus().GetMode() }},
		{title: "SWAPS", cell: func(a *apiv1.Application) string { return fmt.Sprint(a.GetStatus().GetPolicy().GetSwaps()) }},
		{title: "FAULTS", cell: func(a *apiv1.Application) string { return fmt.Sprint(a.GetStatus().GetPolicy().GetFaults()) }},
		{title: "LAST FAULT", cell: func(a *apiv1.Application) string { return a.GetStatus().GetPolicy().GetLastFault() }},
	}, false).lines(apps...))
	return nil
}

// policyStatus tells how an application's policy does.
func policyStatus(app *apiv1.Application) string {
	var b bytes.Buffer
	s := app.GetStatus().GetPolicy()
	fmt.Fprintf(&b, "policy     %s\ndigest     %s\nmode       %s\nswaps      %d\nfaults     %d\n",
		s.GetPolicy(), s.GetDigest(), app.GetStatus().GetMode(), s.GetSwaps(), s.GetFaults())
	if s.GetLastFault() != "" {
		fmt.Fprintf(&b, "last fault %s\n", clean(s.GetLastFault()))
	}
	for _, d := range s.GetDecisions() {
		fmt.Fprintf(&b, "decisions  %d by %s %s\n", d.GetCount(), d.GetPolicy(), d.GetDigest())
	}
	for _, v := range s.GetViolations() {
		fmt.Fprintf(&b, "clipped    %s: %s\n", count(v.GetCount(), "time"), v.GetRule())
	}
	return b.String()
}

func newPolicyRollback(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback APP", Short: "Go back to the policy that decided before",
		Args: exactly("rollback", "the name of an application"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.connected(cmd.Context(), func(c *client.Client) error {
				ctx, cancel := p.request(cmd.Context())
				defer cancel()
				app := p.app(args[0])
				back, err := c.Policies.RollbackPolicy(ctx, &apiv1.RollbackPolicyRequest{Application: app.id, Namespace: app.namespace})
				if err != nil {
					return err
				}
				p.sayBound(args[0], back.GetPolicy(), back.GetReplaced())
				return nil
			})
		},
	}
	return withKind(cmd, "app", kindOfApp)
}
