package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon"
)

// write makes a file and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// given puts a configuration together from files, environment and flags.
func given(t *testing.T, files, env, args []string) (daemon.Config, error) {
	t.Helper()
	flags, _ := newFlags("test")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return sources{files: files, env: env, flags: flags}.load()
}

// What comes later wins: defaults, files in their order, environment, flags; and keys that nobody set keep their defaults.
func TestPrecedence(t *testing.T) {
	first := write(t, "1.yaml", "state: from-first\nlisten: {socket: from-first, address: '127.0.0.1:1'}\nnamespaces: [a, b]\napplication: {batch: 5ms}\n")
	second := write(t, "2.yaml", "listen: {socket: from-second}\ndriver: {heartbeatinterval: 2s}\n")
	env := []string{"RETINUE_LISTEN__ADDRESS=127.0.0.1:2", "RETINUE_SHUTDOWNGRACE=7s", "RETINUE_DAEMON=unix:///x", "OTHER=1", "RETINUE_TELEMETRY__TRACERATIO=0.25"}
	got, err := given(t, []string{first, second}, env, []string{"--shutdownGrace", "9s", "--driver.reflection", "--policy.default.policy=elastic"})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.State = "from-first"
	want.Listen.Socket = "from-second"
	want.Listen.Address = "127.0.0.1:2"
	want.Namespaces = []string{"a", "b"}
	want.Application.Batch = 5 * time.Millisecond
	want.Driver.HeartbeatInterval = 2 * time.Second
	want.Driver.Reflection = true
	want.ShutdownGrace = 9 * time.Second
	want.Telemetry.TraceRatio = 0.25
	want.Policy.Default.Policy = "elastic"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is not understood is refused, wherever it stands, with the place and what was probably meant; all of it at once.
func TestBadConfiguration(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env        []string
		want       []string
	}{
		{"unknown keys", "lisen: {socket: x}\nstat: y\n", nil, []string{"lisen.socket", "did you mean listen.socket?", "did you mean state?"}},
		{"key without its section", "socket: x\n", nil, []string{"did you mean listen.socket?"}},
		{"nothing like it", "xyzzyplugh: 1\n", nil, []string{"xyzzyplugh", "config print"}},
		{"section with a value", "listen: 7\n", nil, []string{"listen is a section"}},
		{"malformed YAML", "listen: [\n", nil, []string{"config.yaml", "yaml"}},
		{"wrong type", "shutdownGrace: soon\n", nil, []string{"shutdownGrace", "soon"}},
		{"environment", "", []string{"RETINUE_LISTEN__SOKET=x"}, []string{"the environment", "did you mean listen.socket?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := given(t, []string{write(t, "config.yaml", c.file)}, c.env, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// What `config print` prints is a configuration file that gives the same configuration again.
func TestPrintedConfigurationIsAConfiguration(t *testing.T) {
	var printed bytes.Buffer
	if err := run(t.Context(), []string{"config", "print", "--state=s", "--namespaces=a,b", "--application.batch=7ms"}, &printed, io.Discard); err != nil {
		t.Fatal(err)
	}
	got, err := given(t, []string{write(t, "printed.yaml", printed.String())}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := given(t, nil, nil, []string{"--state=s", "--namespaces=a,b", "--application.batch=7ms"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// `config validate` says everything that is wrong, with keys, and ends with the code for wrong usage.
func TestValidateSaysEverything(t *testing.T) {
	err := run(t.Context(), []string{"config", "validate", "--state=", "--listen.address=0.0.0.0:1", "--driver.lease=1s", "--application.resync=1ms", "--policy.memoryLimit=1"}, io.Discard, io.Discard)
	if err == nil || exitCode(err) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"state:", "listen.address:", "driver.lease:", "application.resync:", "policy.memoryLimit:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// Wrong words on the command line are named, with the nearest right one.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen.sokcet=x"}, "did you mean listen.socket?"},
		{[]string{"walk"}, "no command"},
		{[]string{"config"}, "config print"},
		{[]string{"run", "more"}, "one word too many"},
		{[]string{"token"}, "--name"},
		{[]string{"token", "--name", "x", "--role", "king"}, "king"},
		{[]string{"version", "-o", "xml"}, "xml"},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		if err == nil || exitCode(err) != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v gave %v", c.args, err)
		}
	}
}

// A daemon that cannot start says which setting is in the way.
func TestDaemonThatCannotStart(t *testing.T) {
	kubeconfig := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	held := t.TempDir()
	base := []string{"--cluster.kubeconfig=" + kubeconfig, "--telemetry.address=", "--listen.socket=" + filepath.Join(held, "s")}
	cfg, err := given(t, nil, nil, append(slices.Clone(base), "--state="+filepath.Join(held, "state")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"state folder in use", []string{"--state=" + filepath.Join(held, "state"), "--listen.socket=" + filepath.Join(held, "s2")}, "in use by another retinued"},
		{"socket in use", []string{"--state=" + t.TempDir()}, "listen.socket"},
		{"no kubeconfig", []string{"--state=" + t.TempDir(), "--listen.socket=" + filepath.Join(held, "s3"), "--cluster.kubeconfig=" + filepath.Join(held, "none")}, "none"},
		{"token file missing", []string{"--state=" + t.TempDir(), "--listen.socket=" + filepath.Join(held, "s4"), "--listen.tokenFile=" + filepath.Join(held, "tokens")}, "listen.tokenFile"},
		{"certificate missing", []string{"--state=" + t.TempDir(), "--listen.socket=" + filepath.Join(held, "s5"), "--listen.address=127.0.0.1:0", "--listen.certFile=x", "--listen.keyFile=y"}, "listen.certFile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := run(ctx, append(slices.Clone(base), c.args...), io.Discard, io.Discard)
			if err == nil || exitCode(err) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
