package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/sdk/client"
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
		{"negative", "application: {slots: -1}\n", nil, []string{"application.slots", "-1 is not between 0 and 4294967295"}},
		{"negative text", "", []string{"RETINUE_APPLICATION__SLOTS=-1"}, []string{"application.slots", "-1 is not between 0 and 4294967295"}},
		{"too large", "application: {maxQueued: 5000000000}\n", nil, []string{"application.maxQueued", "5000000000 is not between 0 and 4294967295"}},
		{"too large a text", "", []string{"RETINUE_APPLICATION__MAXQUEUED=5000000000"}, []string{"application.maxQueued", "5000000000 is not between"}},
		{"larger than any", "driver: {connections: 99999999999999999999}\n", nil, []string{"driver.connections", "is not between"}},
		{"not whole", "driver: {connections: 1.9}\n", nil, []string{"driver.connections", "1.9 is not a whole number"}},
		{"not whole as text", "", []string{"RETINUE_DRIVER__CONNECTIONS=1.9"}, []string{"driver.connections", "is not a whole number"}},
		{"no number", "", []string{"RETINUE_DRIVER__CONNECTIONS=many"}, []string{"driver.connections", "is not a whole number"}},
		{"truth for a number", "driver: {connections: true}\n", nil, []string{"driver.connections", "is not a whole number"}},
		{"number for a truth", "driver: {reflection: 2}\n", nil, []string{"driver.reflection", "neither true nor false"}},
		{"no fraction", "telemetry: {traceRatio: half}\n", nil, []string{"telemetry.traceRatio", "half is not a number"}},
		{"number for a text", "telemetry: {address: 9464}\n", nil, []string{"telemetry.address", "9464 is not a text"}},
		{"number in a list", "namespaces: [a, 1]\n", nil, []string{"namespaces", "1 is not a text"}},
		{"number for a list", "namespaces: 1\n", nil, []string{"namespaces", "not a list"}},
		{"no value", "driver: {connections: }\n", nil, []string{"driver.connections", "no value"}},
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

// Every key can be set by the environment, and sets what it says; variables of clients and executors are left alone.
func TestEveryKeyCanBeSetByTheEnvironment(t *testing.T) {
	others := []string{"RETINUE_NAMESPACE=other", "RETINUE_APPLICATION=other", "RETINUE_EXECUTOR_ID=1", "RETINUE_POD_NAME=p", "RETINUE_CLIENT_TOKEN_FILE=t", "RETINUE_TOKEN_FILE=t"}
	for _, key := range keys {
		text, want := other(t, key)
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
		got, err := given(t, nil, append([]string{name + "=" + text}, others...), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		values := map[string]any{}
		collect(values, "", reflect.ValueOf(got))
		if diff := cmp.Diff(want, values[key]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		values[key] = nil
		before := map[string]any{}
		collect(before, "", reflect.ValueOf(defaults()))
		before[key] = nil
		if diff := cmp.Diff(before, values); diff != "" {
			t.Errorf("%s set something else: %s", name, diff)
		}
	}
}

// other is a value of the key's type that is not the default, and how it is written.
func other(t *testing.T, key string) (text string, value any) {
	t.Helper()
	switch def := keyTypes[key].(type) {
	case bool:
		return fmt.Sprint(!def), !def
	case time.Duration:
		return "1h23m", 83 * time.Minute
	case string:
		return "another " + def, "another " + def
	case []string:
		return "some,others", []string{"some", "others"}
	case int:
		return "77", 77
	case int64:
		return "77", int64(77)
	case uint32:
		return "4294967295", uint32(math.MaxUint32)
	case uint64:
		return "18446744073709551615", uint64(math.MaxUint64)
	case float64:
		return "0.125", 0.125
	default:
		t.Fatalf("%s is of a type that this test does not know", key)
		return "", nil
	}
}

// A variable that looks like a section of the configuration and is none is no other program's variable: it is a slip of the pen.
func TestNearMissOfASectionIsNoticed(t *testing.T) {
	for name, want := range map[string]string{"RETINUE_EXECUTOR__ADDRESS": "executors.address", "RETINUE_NAMESPACES_": "namespaces"} {
		if _, err := given(t, nil, []string{name + "=x"}, nil); err == nil || !strings.Contains(err.Error(), "did you mean "+want) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

// Numbers may be written in every form that is one, as long as they are exact.
func TestNumbersAreTakenAsWritten(t *testing.T) {
	got, err := given(t, []string{write(t, "c.yaml", "application: {slots: 1e3, retainBytes: 18446744073709551615}\ntelemetry: {traceRatio: 1}\n")},
		[]string{"RETINUE_DRIVER__CONNECTIONS= 12"}, []string{"--cluster.pageSize=-5"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Application.Slots != 1000 || got.Application.RetainBytes != math.MaxUint64 || got.Telemetry.TraceRatio != 1 || got.Driver.Connections != 12 || got.Cluster.PageSize != -5 {
		t.Errorf("got %+v, %+v", got.Application, got.Driver)
	}
}

// The daemon listens where its clients look, whatever the environment says of folders.
func TestDaemonListensWhereClientsLook(t *testing.T) {
	for _, env := range []map[string]string{
		{"XDG_RUNTIME_DIR": "/run/user/7", "XDG_STATE_HOME": "/state", "HOME": "/home/u"},
		{"XDG_STATE_HOME": "/state", "HOME": "/home/u"},
		{"HOME": "/home/u"},
		{},
	} {
		for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"} {
			t.Setenv(name, env[name])
		}
		if got, want := "unix://"+defaults().Listen.Socket, client.DefaultAddress(); got != want {
			t.Errorf("%v: the daemon listens at %s, clients look at %s", env, got, want)
		}
		if state := defaults().State; !filepath.IsAbs(state) {
			t.Errorf("%v: the state folder is %q", env, state)
		}
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
		{"certificate missing", []string{"--state=" + t.TempDir(), "--listen.socket=" + filepath.Join(held, "s5"), "--listen.address=127.0.0.1:0", "--listen.certFile=x", "--listen.keyFile=y", "--executors.caFile=z"}, "listen.certFile"},
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
