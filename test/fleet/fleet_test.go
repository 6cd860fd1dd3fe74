package fleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// The test program is the local cluster's, too.
func TestMain(m *testing.M) {
	if code, entered := local.Entered(); entered {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A daemon that ends at once is told of at once, and Stop leaves nothing of what was started before it.
func TestDaemonThatEndsIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "retinued"), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := Start(t.Context(), Config{
		Dir: dir, Bin: dir, Up: func(ctx context.Context, dir string) error { return local.Up(ctx, local.Options{Dir: dir}) },
	})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("starting: %v, want the exit status", err)
	}
	if err = f.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("stopping: %v, want the daemon's exit status and nothing else", err)
	}
	status, err := local.Inspect(t.Context(), filepath.Join(dir, "cluster"))
	if err != nil || status.Running {
		t.Errorf("the local cluster runs: %v, %v", status.Running, err)
	}
}

// What carries a folder's name in its command is found as long as it lives.
func TestSurvivorsAreFound(t *testing.T) {
	dir := t.TempDir()
	sleeper := exec.CommandContext(t.Context(), "sh", "-c", "read line", dir)
	in, err := sleeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if left := survivors(dir); len(left) != 1 || !strings.Contains(left[0], dir) {
		t.Errorf("survivors %q, want the one that was started", left)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = sleeper.Wait() // read reports the end of its input as a failure
	if left := survivors(dir); len(left) != 0 {
		t.Errorf("survivors %q after the end", left)
	}
}
