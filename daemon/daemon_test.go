package daemon_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/local/wire"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
	"github.com/retinue-sched/retinue/daemon/state"
)

// noLogs stands for containers that never wrote anything.
type noLogs struct{}

func (noLogs) Logs(context.Context, *corev1.Pod, corev1.PodLogOptions, io.Writer) error { return nil }

// kubernetes is an API server in memory behind the real wire protocol. It returns a kubeconfig's path, and what ends it.
func kubernetes(t *testing.T) (kubeconfig string, end func()) {
	t.Helper()
	done := make(chan struct{})
	handler, err := wire.New(store.New(model.New(time.Now(), model.Config{Seed: 1})), wire.Config{
		Token: "token", Version: version.Info{GitVersion: "v1.37.0-test"}, Logs: noLogs{}, Done: done,
		BookmarkEvery: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewTLSServer(handler)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw}))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
		"users: [{name: u, user: {token: token}}]\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: default}}]\n", ts.URL, ca)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		close(done)
		ts.CloseClientConnections()
		ts.Close()
	}
}

// freePort is an address of this machine that nobody uses.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// settings are those of a daemon that lives in one short folder.
func settings(t *testing.T, kubeconfig string) daemon.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := daemon.DefaultConfig()
	cfg.State, cfg.Listen.Socket = filepath.Join(dir, "state"), filepath.Join(dir, "d.sock")
	cfg.Listen.Address, cfg.Telemetry.Address = "127.0.0.1:0", freePort(t)
	cfg.Cluster.Kubeconfig = kubeconfig
	cfg.Policy.Interpreter = true // compiling takes its time, and is not what is tested here
	cfg.Policy.StartTimeout, cfg.Policy.Deadline, cfg.Application.DecisionDeadline = time.Minute, time.Minute, 3*time.Minute
	cfg.ShutdownGrace = time.Minute
	return cfg
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text) + fmt.Sprint(errors.Join(err, resp.Body.Close()))
}

// becomesReady waits until the daemon says that it is ready.
func becomesReady(t *testing.T, address string, ended <-chan error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(2 * time.Minute)
	for {
		status, body := get(t, "http://"+address+"/readyz")
		if status == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("the daemon ended: %v", err)
		case <-limit:
			t.Fatalf("the daemon is not ready: %s", body)
		}
	}
}

// A daemon starts, is ready, keeps others off what is its own, ends without an error when it is told to, and leaves nothing behind.
func TestLifeOfADaemon(t *testing.T) {
	before := goleak.IgnoreCurrent()
	kubeconfig, end := kubernetes(t)
	cfg := settings(t, kubeconfig)
	d, err := daemon.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	becomesReady(t, cfg.Telemetry.Address, ended)

	if info, err := os.Stat(cfg.Listen.Socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	taken := d.Addresses()[1].String()
	for want, change := range map[string]func(*daemon.Config){
		state.ErrInUse.Error():                       func(c *daemon.Config) { c.State = cfg.State },
		"listen.socket " + cfg.Listen.Socket:         func(c *daemon.Config) { c.Listen.Socket = cfg.Listen.Socket },
		"listen.address " + taken:                    func(c *daemon.Config) { c.Listen.Address = taken },
		"telemetry.address " + cfg.Telemetry.Address: func(c *daemon.Config) { c.Telemetry.Address = cfg.Telemetry.Address },
	} {
		second := settings(t, kubeconfig)
		change(&second)
		if _, err := daemon.New(second, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a second daemon got %v, want an error that says %s", err, want)
		}
	}

	stop()
	if err := <-ended; err != nil {
		t.Errorf("a stop that was asked for gave %v", err)
	}
	nothingHeld(t, cfg)
	end()
	goleak.VerifyNone(t, before)
}

// nothingHeld checks that another daemon could take over: the state folder, the socket's place and the ports are free.
func nothingHeld(t *testing.T, cfg daemon.Config) {
	t.Helper()
	if _, err := os.Lstat(cfg.Listen.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there (%v)", err)
	}
	if l, err := net.Listen("tcp", cfg.Telemetry.Address); err != nil {
		t.Errorf("the admin address is not free: %v", err)
	} else {
		_ = l.Close()
	}
	if f, err := state.Open(cfg.State); err != nil {
		t.Errorf("the state folder is not free: %v", err)
	} else {
		_ = f.Close()
	}
}

// A daemon that is never run can be closed, and so does one that cannot start: nothing stays open.
func TestNothingStaysOpenWithoutRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	kubeconfig, end := kubernetes(t)
	cfg := settings(t, kubeconfig)
	for range 2 { // the second time shows that the first left nothing
		d, err := daemon.New(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		nothingHeld(t, cfg)
	}
	held, err := net.Listen("tcp", cfg.Telemetry.Address) // the last thing that New opens
	if err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.New(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "telemetry.address") {
		t.Errorf("got %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	nothingHeld(t, cfg)
	end()
	goleak.VerifyNone(t, before)
}

// A token file is read again on request; one that is wrong, or empty while tokens are in force, changes nothing.
func TestReload(t *testing.T) {
	kubeconfig, end := kubernetes(t)
	defer end()
	cfg := settings(t, kubeconfig)
	cfg.Listen.TokenFile = filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(cfg.Listen.TokenFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := strings.Repeat("ab", 32) + " view * somebody\n"
	write("# nobody yet\n")
	var log strings.Builder
	d, err := daemon.New(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err) // a new daemon may well begin with nobody let in
	}
	defer func() { _ = d.Close() }()
	write(line)
	if err := d.Reload(t.Context()); err != nil || !strings.Contains(log.String(), "count=1") {
		t.Errorf("got %v; %s", err, log.String())
	}
	for text, want := range map[string]string{"": "no token", "# all gone\n": "no token", "half a li": "line 1"} {
		write(text)
		if err := d.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "listen.tokenFile") {
			t.Errorf("%q gave %v", text, err)
		}
	}
	if err := os.Remove(cfg.Listen.TokenFile); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone gave %v", err)
	}
}
