package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/retinue-sched/retinue/daemon/policy"
	"github.com/retinue-sched/retinue/daemon/scenario"
	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/sdk"
)

func newPolicyTest(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "test POLICY FILE...",
		Short: "Run scenario files against a policy",
		Long: `Runs allocation scenarios against the daemon's own core with a virtual clock, without a daemon.
POLICY is the name of a shipped policy, which is run natively, or a module's file, which is run in the sandbox.
A setting in a scenario (gate) is given to policies whose manifest names it, and left out for others.
Prints a line for each scenario and ends with "N passed, N failed"; the exit code is 1 if one failed.`,
		Example: `  retinue policy test direct scenarios.yaml
  retinue policy test ./direct.wasm scenarios.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("test takes a policy and at least one scenario file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			tested, done, err := subject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return errors.Join(p.testPolicy(cmd.Context(), args[0], tested, args[1:]), done())
		},
	}
}

func (p *program) testPolicy(ctx context.Context, name string, tested scenario.Subject, files []string) error {
	var stories []scenario.Scenario
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return usagef("reading scenarios: %v", err)
		}
		list, err := scenario.Load(in, file)
		_ = in.Close() // it was only read
		if err != nil {
			return usagef("%v", err)
		}
		stories = append(stories, list...)
	}
	var failures []scenario.Scenario
	for _, s := range stories {
		err := scenario.Run(ctx, s, tested)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failures = append(failures, s)
			p.printf("FAIL  %s\n      %v\n", s.Name, err)
		default:
			p.printf("ok    %s\n", s.Name)
		}
	}
	p.printf("%d passed, %d failed\n", len(stories)-len(failures), len(failures))
	if len(failures) > 0 {
		return failedf("%d of %s failed%s", len(failures), count(len(stories), "scenario"), describes(ctx, name, failures))
	}
	return nil
}

// describes hints at the policy that scenarios are about, if it is another than the one that failed them.
func describes(ctx context.Context, failed string, stories []scenario.Scenario) string {
	const spark = "direct"
	tested, done, err := subject(ctx, spark)
	if err != nil || failed == spark {
		return ""
	}
	defer func() { _ = done() }() // it runs natively, and has nothing to close
	for _, s := range stories {
		if scenario.Run(ctx, s, tested) != nil {
			return ""
		}
	}
	return fmt.Sprintf(": they describe `%s`, which passes them; another policy may well decide otherwise", spark)
}

// nothingToClose is what is left to do after a policy that was run natively.
func nothingToClose() error { return nil }

// subject readies what is tested.
func subject(ctx context.Context, name string) (scenario.Subject, func() error, error) {
	if native := shippedPolicy(name); native != nil {
		settings, err := shippedSettings(name)
		configure := func(settings string) (scenario.Policy, error) { return sdk.Native(native(), []byte(settings)) }
		return scenario.Subject{Configure: configure, Settings: settings}, nothingToClose, err
	}
	module, err := os.ReadFile(name)
	if err != nil && !looksLikeFile(name) {
		return scenario.Subject{}, nil, notFoundf("%q is neither a shipped policy (direct, elastic) nor a file", name)
	}
	if err != nil {
		return scenario.Subject{}, nil, usagef("reading the policy: %w", err)
	}
	return sandbox(ctx, module)
}

// shippedPolicy makes a fresh value of a shipped policy, or is nil.
func shippedPolicy(name string) func() sdk.Policy {
	switch name {
	case "direct":
		return func() sdk.Policy { return &direct.Policy{} }
	case "elastic":
		return func() sdk.Policy { return &elastic.Policy{} }
	}
	return nil
}

// shippedSettings names the settings of a shipped policy.
func shippedSettings(name string) ([]string, error) {
	shipped, _ := modules.Named(name)
	module, err := shipped.Wasm()
	if err != nil {
		return nil, err
	}
	return settingsOf(module, len(module))
}

// sandbox readies a module in the host that the daemon uses.
func sandbox(ctx context.Context, module []byte) (scenario.Subject, func() error, error) {
	host, err := policy.New(policy.DefaultConfig(), slog.New(slog.DiscardHandler), nil) //nolint:contextcheck // making a host waits for nothing
	if err != nil {
		return scenario.Subject{}, nil, err
	}
	done := func() error { return host.Close(context.WithoutCancel(ctx)) }
	loaded, err := host.Load(ctx, "under-test", module) // its own name may be that of a shipped policy, which it shall replace one day
	if err != nil {
		return scenario.Subject{}, nil, errors.Join(usagef("%w", err), done())
	}
	settings, err := settingsOf(module, loaded.Size)
	if err != nil {
		return scenario.Subject{}, nil, errors.Join(err, done())
	}
	number := 0
	configure := func(settings string) (scenario.Policy, error) {
		number++
		app := fmt.Sprintf("scenario-%d", number)
		_, _, err := host.Bind(ctx, app, policy.Binding{Policy: loaded.Digest, Settings: settings})
		return sandboxed{ctx: ctx, host: host, app: app}, err
	}
	return scenario.Subject{Configure: configure, Settings: settings}, done, nil
}

// sandboxed is a module that answers one scenario's questions.
type sandboxed struct {
	ctx  context.Context //nolint:containedctx // a scenario's policy is called without one
	host *policy.Host
	app  string
}

// Call puts a question that was encoded for any policy to the module, which gets the columns that it asks for.
func (s sandboxed) Call(hook hostabi.Hook, view []byte) ([]byte, error) {
	decoded, err := hostabi.DecodeView(view)
	if err != nil {
		return nil, err
	}
	answer := s.host.Ask(s.ctx, s.app, hook, shown{decoded})
	if answer.Fault != "" {
		return nil, errors.New(answer.Fault)
	}
	return hostabi.EncodeDecision(nil, answer.Decision), nil
}

// shown is a question that is known already.
type shown struct{ view hostabi.View }

// View fills in the question.
func (s shown) View(v *hostabi.View, _ hostabi.Projection) { *v = s.view }
