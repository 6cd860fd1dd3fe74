// Command retinue-executor runs in an executor's pod: it registers with retinued and runs the tasks that it is given.
//
// Exit codes: 0 it was stopped by the daemon, or told to leave and has left; 1 it could not start; 2 wrong usage; 3 the daemon refused it;
// 4 the daemon was gone for longer than the lease.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/retinue-sched/retinue/executor"
)

// version is set when a release is built.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "retinue-executor:", err)
	}
	os.Exit(exitCode(err))
}

// errUsage reports that the command line is wrong.
var errUsage = errors.New("wrong usage; --help shows what there is")

func exitCode(err error) int {
	if errors.Is(err, errUsage) {
		return 2
	}
	return executor.ExitCode(err)
}

// run is the program. getenv reads the environment it is configured by.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	cfg, opts, err := configure(args, getenv, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case opts.version:
		fmt.Fprintf(stdout, "retinue-executor %s %s %s/%s\n", cfg.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}
	log, err := logger(stderr, opts)
	if err != nil {
		return err
	}
	agent, err := executor.New(cfg, log)
	if err != nil {
		return err
	}
	return agent.Run(ctx)
}

// options are what does not belong to the executor itself.
type options struct {
	version             bool
	logFormat, logLevel string
}

// configure takes flags, then the environment, then the defaults.
func configure(args []string, getenv func(string) string, help io.Writer) (executor.Config, options, error) {
	cfg, opts := executor.DefaultConfig(), options{}
	cfg.Version, cfg.Alone = versionText(), true
	env := environment{get: getenv}
	flags := pflag.NewFlagSet("retinue-executor", pflag.ContinueOnError)
	flags.SetOutput(help)
	flags.StringVar(&cfg.Address, "address", getenv("RETINUE_ADDRESS"), "the daemon's address: host:port, or unix:///path (RETINUE_ADDRESS)")
	flags.StringVar(&cfg.Application, "application", getenv("RETINUE_APPLICATION"), "the application's id (RETINUE_APPLICATION)")
	flags.StringVar(&cfg.Namespace, "namespace", getenv("RETINUE_NAMESPACE"), "the application's namespace (RETINUE_NAMESPACE)")
	flags.Uint64Var(&cfg.Executor, "executor-id", env.number("RETINUE_EXECUTOR_ID", 0, 64), "this executor's number (RETINUE_EXECUTOR_ID)")
	flags.StringVar(&cfg.PodName, "pod-name", getenv("RETINUE_POD_NAME"), "the pod's name (RETINUE_POD_NAME)")
	flags.StringVar(&cfg.PodUID, "pod-uid", getenv("RETINUE_POD_UID"), "the pod's UID (RETINUE_POD_UID)")
	flags.Uint32Var(&cfg.Slots, "slots", uint32(env.number("RETINUE_SLOTS", uint64(cfg.Slots), 32)), "how many tasks run at once (RETINUE_SLOTS)")
	flags.StringVar(&cfg.CAFile, "ca-file", getenv("RETINUE_CA_FILE"), "certificates that vouch for the daemon (RETINUE_CA_FILE)")
	flags.StringVar(&cfg.WorkDir, "work-dir", getenv("RETINUE_WORK_DIR"), "where tasks get their folders; a temporary folder when empty (RETINUE_WORK_DIR)")
	flags.DurationVar(&cfg.Lease, "lease", env.duration("RETINUE_LEASE", cfg.Lease), "how long to go on without the daemon, until it says (RETINUE_LEASE)")
	flags.DurationVar(&cfg.LeaveGrace, "leave-grace", env.duration("RETINUE_LEAVE_GRACE", cfg.LeaveGrace), "how long tasks may go on after SIGTERM (RETINUE_LEAVE_GRACE)")
	flags.DurationVar(&cfg.KillGrace, "kill-grace", env.duration("RETINUE_KILL_GRACE", cfg.KillGrace), "between asking and forcing a task to end (RETINUE_KILL_GRACE)")
	tokenFile := flags.String("token-file", getenv("RETINUE_TOKEN_FILE"), "holds the token, instead of RETINUE_TOKEN (RETINUE_TOKEN_FILE)")
	flags.StringVar(&opts.logFormat, "log-format", or(getenv("RETINUE_LOG_FORMAT"), "text"), "text or json (RETINUE_LOG_FORMAT)")
	flags.StringVar(&opts.logLevel, "log-level", or(getenv("RETINUE_LOG_LEVEL"), "info"), "debug, info, warn or error (RETINUE_LOG_LEVEL)")
	flags.BoolVar(&opts.version, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return cfg, opts, err
		}
		return cfg, opts, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return cfg, opts, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	if opts.version {
		return cfg, opts, nil
	}
	var err error
	if cfg.Token, err = token(*tokenFile, getenv); err != nil {
		return cfg, opts, err
	}
	return cfg, opts, env.err
}

// token reads the token from its file, or else from the environment.
func token(file string, getenv func(string) string) (executor.Secret, error) {
	if file == "" {
		return executor.Secret(strings.TrimSpace(getenv("RETINUE_TOKEN"))), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return executor.Secret(strings.TrimSpace(string(text))), nil
}

// environment reads values that are not text, and remembers the first that cannot be read.
type environment struct {
	get func(string) string
	err error
}

func (e *environment) number(name string, otherwise uint64, bits int) uint64 {
	text := e.get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, bits)
	e.note(name, text, "a number", err)
	return n
}

func (e *environment) duration(name string, otherwise time.Duration) time.Duration {
	text := e.get(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	e.note(name, text, "a duration like 90s", err)
	return d
}

func (e *environment) note(name, text, wanted string, err error) {
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("reading the environment: %s is %q, which is not %s", name, text, wanted)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func logger(to io.Writer, opts options) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(opts.logLevel)); err != nil {
		return nil, fmt.Errorf("%w: --log-level is %q, not debug, info, warn or error", errUsage, opts.logLevel)
	}
	handler := &slog.HandlerOptions{Level: level}
	switch opts.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(to, handler)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, handler)), nil
	default:
		return nil, fmt.Errorf("%w: --log-format is %q, neither text nor json", errUsage, opts.logFormat)
	}
}

func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return info.Main.Version
	}
	return or(version, "unknown")
}
