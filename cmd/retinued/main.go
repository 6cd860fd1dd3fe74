// Command retinued keeps applications on Kubernetes attended by executors. `retinued --help` lists what it can be told.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// version is set when a release is built.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "retinued:", err)
		os.Exit(exitCode(err))
	}
}

// usageError is what a person wrote wrongly.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode is 2 for what a person wrote wrongly and 1 for everything else.
func exitCode(err error) int {
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}

// run is the program.
func run(ctx context.Context, args []string, out, logTo io.Writer) error {
	command := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "run":
		err = runDaemon(ctx, args, out, logTo)
	case "config":
		err = runConfig(args, out)
	case "token":
		err = runToken(args, out)
	case "version":
		err = runVersion(args, out)
	case "help":
		err = printUsage(out)
	default:
		err = usageError{fmt.Errorf("there is no command %q: write run, config, token or version", command)}
	}
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	return err
}

const usage = `retinued keeps applications on Kubernetes attended by executors.

Usage:
  retinued [run] [flags]              run until a signal comes
  retinued config print [flags]       print the configuration that these flags, files and variables give
  retinued config validate [flags]    check it, and say everything that is wrong
  retinued token --role ROLE --namespace NAMESPACE --name NAME
                                      make a client's token and the line of the token file that lets it in
  retinued version [-o json]

Every key of the configuration is also a flag (--listen.socket) and an environment variable (RETINUE_LISTEN__SOCKET).
Flags win over the environment, the environment over files (--config, later ones win), files over the defaults.
SIGHUP, or a change to a file, reloads what can change while the daemon runs and says what needs a restart.

Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or configuration.

Flags:
`

func printUsage(out io.Writer) error {
	flags, _ := newFlags("retinued")
	const columns = 120 // what most terminals have room for
	_, err := fmt.Fprint(out, usage, flags.FlagUsagesWrapped(columns))
	return err
}

// parse reads the flags of a command that takes the configuration.
func parse(name string, args []string, out io.Writer) (sources, []string, error) {
	flags, files := newFlags(name)
	flags.Usage = func() { _ = printUsage(out) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return sources{}, nil, err
		}
		hint := " (`retinued help` lists the flags)"
		if key, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
			hint = suggestion(key)
		}
		return sources{}, nil, usageError{fmt.Errorf("%w%s", err, hint)}
	}
	return sources{files: configFiles(*files), env: os.Environ(), flags: flags}, flags.Args(), nil
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
