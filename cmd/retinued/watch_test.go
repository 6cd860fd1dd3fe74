package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// overwrite writes a file in place.
func overwrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mounted makes a folder as Kubernetes mounts one: the file leads through ..data to a folder that is swapped as a whole.
func mounted(t *testing.T) (file string, swap func(text string)) {
	t.Helper()
	dir := t.TempDir()
	version := 0
	swap = func(text string) {
		t.Helper()
		version++
		real := "..version-" + strings.Repeat("i", version)
		if err := os.Mkdir(filepath.Join(dir, real), 0o700); err != nil {
			t.Fatal(err)
		}
		overwrite(t, filepath.Join(dir, real, "tokens"), text)
		fresh := filepath.Join(dir, "..fresh")
		if err := errors.Join(os.Symlink(real, fresh), os.Rename(fresh, filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	swap("first")
	file = filepath.Join(dir, "tokens")
	if err := os.Symlink(filepath.Join("..data", "tokens"), file); err != nil {
		t.Fatal(err)
	}
	return file, swap
}

// However a file is changed, and as often as it is, each change is told once, when it has come to rest.
func TestEveryKindOfChangeIsTold(t *testing.T) {
	plain := write(t, "tokens", "first")
	link, swap := mounted(t)
	for _, c := range []struct {
		name   string
		file   string
		change func(text string)
	}{
		{"written in place", plain, func(text string) { overwrite(t, plain, text) }},
		{"renamed over", plain, func(text string) {
			overwrite(t, plain+".new", text)
			if err := os.Rename(plain+".new", plain); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed and made anew", plain, func(text string) {
			if err := os.Remove(plain); err != nil {
				t.Fatal(err)
			}
			overwrite(t, plain, text)
		}},
		{"link swapped", link, swap},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w watcher
			w.add(c.file, "", write(t, "another", "that stays"))
			for _, text := range []string{"the second", "the third one"} { // a watch must survive the first change
				if told := w.look(); told != nil {
					t.Fatalf("nothing has changed, and told is %v", told)
				}
				c.change(text)
				if told := w.look(); told != nil {
					t.Errorf("%v is told before it has come to rest", told)
				}
				if told := w.look(); !slices.Equal(told, []string{c.file}) {
					t.Errorf("told %v, want the file that changed", told)
				}
			}
		})
	}
}

// A file that is being written is left alone until the writer has paused; one that goes away is told, and so is its return.
func TestChangeMustComeToRest(t *testing.T) {
	file := write(t, "tokens", "first")
	var w watcher
	w.add(file)
	for text := range strings.SplitSeq("a,ab,abc,abcd", ",") {
		overwrite(t, file, text)
		if told := w.look(); told != nil {
			t.Fatalf("%v is told at %q", told, text)
		}
	}
	if told := w.look(); !slices.Equal(told, []string{file}) {
		t.Errorf("told %v", told)
	}
	for _, change := range []func() error{func() error { return os.Remove(file) }, func() error { return os.WriteFile(file, nil, 0o600) }} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if first, second := w.look(), w.look(); first != nil || !slices.Equal(second, []string{file}) {
			t.Errorf("told %v, then %v", first, second)
		}
	}
}

// Ticks make it look, a hangup tells at once, and the end of the context ends it.
func TestWatcherRuns(t *testing.T) {
	file := write(t, "tokens", "first")
	var w watcher
	w.add(file)
	overwrite(t, file, "the second")
	tick, hangup, told, ended := make(chan time.Time), make(chan os.Signal), make(chan []string), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- w.Run(ctx, tick, hangup, func(_ context.Context, files []string) { told <- files })
	}()
	tick <- time.Time{}
	tick <- time.Time{}
	if got := <-told; !slices.Equal(got, []string{file}) {
		t.Errorf("told %v", got)
	}
	hangup <- syscall.SIGHUP
	if got := <-told; got != nil {
		t.Errorf("a hangup told %v", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A daemon that runs takes a changed configuration, and says which of the changed keys need a restart; a wrong one changes nothing.
func TestRunningDaemonReloads(t *testing.T) {
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	config := write(t, "config.yaml", "executors: {image: a}\n")
	log := lines{to: make(chan string, 1000)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{
			"--config", config, "--cluster.kubeconfig", kubeconfig, "--telemetry.address=", "--policy.interpreter", "--shutdownGrace=1m", "--state", filepath.Join(dir, "state"), "--listen.socket", filepath.Join(dir, "s"),
		}, log, log)
	}()
	log.await(ctx, t, "retinued starts")
	overwrite(t, config, "executors: {image: b}\ntelemetry: {logLevel: debug}\n")
	log.await(ctx, t, `configuration reloaded","restart_needed_for":["executors.image"]`)
	overwrite(t, config, "shutdownGrace: soon\n")
	log.await(ctx, t, "configuration not reloaded")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
}

// lines hands on what is logged, a line at a time.
type lines struct{ to chan string }

func (l lines) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		select {
		case l.to <- string(line):
		default: // nobody reads any more
		}
	}
	return len(text), nil
}

func (l lines) await(ctx context.Context, t *testing.T, wanted string) {
	t.Helper()
	for {
		select {
		case line := <-l.to:
			if strings.Contains(line, wanted) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no line says %q", wanted)
		}
	}
}
