package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/sdk/client"
)

// A token goes with every call, without the white space of its file.
func TestTokenGoesAlong(t *testing.T) {
	s := &server{}
	socket := listen(t, s)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret-7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Address: "unix://" + socket, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	job, _ := jobOf(1)
	if err := c.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := s.headers.Get("authorization"); len(got) != 1 || got[0] != "Bearer secret-7" {
		t.Errorf("the daemon saw %q, want the token", got)
	}
}

// Plain text is spoken only where nobody else can listen.
func TestPlainTextStaysAtHome(t *testing.T) {
	for address, fine := range map[string]bool{
		"unix:///run/retinued.sock": true, "127.0.0.1:7070": true, "[::1]:7070": true, "localhost:7070": true,
		"10.0.0.1:7070": false, "retinued.example:443": false, "localhost.example:443": false, "nonsense": false, "dns:///localhost:1": false,
	} {
		c, err := client.New(client.Config{Address: address})
		if (err == nil) != fine {
			t.Errorf("%s: got %v, want accepted: %t", address, err, fine)
		}
		if err == nil {
			_ = c.Close()
		} else if !strings.Contains(err.Error(), "--ca-file") {
			t.Errorf("%s: %q does not say what to do", address, err)
		}
	}
}

// A setting that is wrong is named.
func TestWrongFilesAreNamed(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]client.Config{
		"reading the token: open /nowhere":                 {Address: "unix:///x", TokenFile: "/nowhere"},
		"reading the certificate authority: open /nowhere": {Address: "h:1", CAFile: "/nowhere"},
		junk + " holds no certificate in PEM":              {Address: "h:1", CAFile: junk},
	} {
		if _, err := client.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The environment says where the daemon is; without it the usual socket is meant.
func TestConfigFromEnvironment(t *testing.T) {
	for _, name := range []string{"RETINUE_DAEMON", "RETINUE_CLIENT_TOKEN_FILE", "RETINUE_CLIENT_CA_FILE", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got := client.ConfigFromEnvironment(); got != (client.Config{Address: "unix:///state/retinue/retinued.sock"}) {
		t.Errorf("got %+v, want the socket in the state folder", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	if got := client.DefaultAddress(); got != "unix:///run/user/7/retinue/retinued.sock" {
		t.Errorf("got %s, want the socket in the run-time folder", got)
	}
	t.Setenv("RETINUE_DAEMON", "h:1")
	t.Setenv("RETINUE_CLIENT_TOKEN_FILE", "t")
	t.Setenv("RETINUE_CLIENT_CA_FILE", "c")
	if got := client.ConfigFromEnvironment(); got != (client.Config{Address: "h:1", TokenFile: "t", CAFile: "c"}) {
		t.Errorf("got %+v, want what the environment says", got)
	}
}

// Wait ends when the daemon opens its door, and not before; or when patience does.
func TestWaitForADaemonThatComes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c, err := client.New(client.Config{Address: "unix://" + socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that nobody came in time", err)
	}
	came := listen(t, &server{})
	if err := os.Symlink(came, socket); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Errorf("got %v, want that the daemon was met", err)
	}
}
