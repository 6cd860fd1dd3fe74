package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// streams is where the program reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// program is what all commands share: the streams and the global flags.
type program struct {
	streams
	daemon    client.Config
	namespace string
	timeout   time.Duration
}

// newRoot makes the tree of commands.
func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "retinue",
		Short: "Keep applications attended by executors, and run tasks on them",
		Long: `retinue talks to a daemon, retinued, which keeps each application attended by as many executors as it needs.

It finds the daemon by --daemon, or RETINUE_DAEMON, or at the Unix socket where a daemon of the same user listens by default.
Installed under the name kubectl-retinue it is also a plugin of kubectl.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v: `%s --help` lists the flags", err, cmd.CommandPath())
	})
	p.daemon = client.ConfigFromEnvironment()
	flags := root.PersistentFlags()
	flags.StringVar(&p.daemon.Address, "daemon", p.daemon.Address, "where the daemon is: unix:///path/to/socket or host:port")
	flags.StringVar(&p.daemon.TokenFile, "token-file", p.daemon.TokenFile, "file with the token that lets you in over TCP")
	flags.StringVar(&p.daemon.CAFile, "ca-file", p.daemon.CAFile, "certificate authority of the daemon's certificate")
	flags.StringVarP(&p.namespace, "namespace", "n", "", "namespace of the application; the daemon's default when empty")
	flags.DurationVar(&p.timeout, "request-timeout", 30*time.Second, "how long one request may take")
	root.AddCommand(p.commands()...)
	explainHelp(root)
	return root
}

// explainHelp makes help for what there is not an error, as any other wrong word is one.
func explainHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // there is no such command, then
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, words []string) error {
		cmd, rest, err := root.Find(words)
		if err != nil || len(rest) > 0 && cmd.HasSubCommands() {
			return unknown(cmd, words[len(words)-max(len(rest), 1):][0])
		}
		return cmd.Help()
	}
}

// commands lists the commands, in the order in which help shows them.
func (p *program) commands() []*cobra.Command {
	return []*cobra.Command{
		newApply(p), newGet(p), newDescribe(p), newScale(p), newStop(p), newDelete(p),
		newRun(p), newLogs(p), newKill(p), newDrain(p), newPolicy(p), newLocal(p), newVersion(p), newManifest(), newExitCodes(),
	}
}

// startTime is how long a daemon that was started a moment ago gets to open its door.
const startTime = 3 * time.Second

// connected runs do with a connection to the daemon.
func (p *program) connected(ctx context.Context, do func(c *client.Client) error) error {
	c, err := client.New(p.daemon)
	if err != nil {
		return usagef("%v", err)
	}
	defer func() { _ = c.Close() }()
	waiting, cancel := context.WithTimeout(ctx, startTime)
	_ = c.Wait(waiting) // if nobody comes, the call itself says so
	cancel()
	if err := do(c); err != nil {
		return p.explain(err, func() bool { return p.answers(context.WithoutCancel(ctx), c) })
	}
	return nil
}

// answers reports whether the daemon answers.
func (p *program) answers(ctx context.Context, c *client.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	_, err := c.Applications.ListApplications(ctx, &apiv1.ListApplicationsRequest{PageSize: 1})
	return err == nil
}

// request bounds one request.
func (p *program) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.timeout)
}

// printf writes to the standard output. An error there (a closed pipe) ends the program soon enough by itself.
func (p *program) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// noArgs refuses arguments with a sentence.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknown(cmd, args[0])
	}
	return usagef("%s takes no arguments, and got %q", cmd.CommandPath(), args[0])
}

// unknown refuses a word that is not one of a command's commands.
func unknown(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("%q has no command %q%s", cmd.CommandPath(), word, suggest(word, names))
}

// exclude refuses a command line that has both flags of a pair.
func exclude(cmd *cobra.Command, pairs ...[2]string) {
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, pair := range pairs {
			if cmd.Flags().Changed(pair[0]) && cmd.Flags().Changed(pair[1]) {
				return usagef("--%s and --%s exclude each other", pair[0], pair[1])
			}
		}
		return nil
	}
}
