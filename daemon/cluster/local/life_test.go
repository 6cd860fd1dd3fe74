package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// bounded is a context for what should take a second.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// up starts a cluster of its own process and ends it after the test.
func up(t *testing.T, dir string) (*world, local.Status) {
	t.Helper()
	var out strings.Builder
	if err := local.Up(bounded(t), local.Options{Dir: dir, Out: &out}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Down(bounded(t), dir); err != nil {
			t.Error(err)
		}
	})
	s := inspect(t, dir)
	if !strings.Contains(out.String(), s.URL) || !strings.Contains(out.String(), s.Kubeconfig) {
		t.Errorf("up said %q, status is %+v", out.String(), s)
	}
	return connect(t, dir), s
}

func inspect(t *testing.T, dir string) local.Status {
	t.Helper()
	s, err := local.Inspect(bounded(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A cluster that was brought up runs in a process of its own, tells its state, and is gone after Down with all its pods.
func TestUpAndDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if s := inspect(t, dir); s.Running || s.Ready {
		t.Fatalf("before: %+v", s)
	}
	w, s := up(t, dir)
	if !s.Running || !s.Ready || s.PID == os.Getpid() || s.PID == 0 {
		t.Fatalf("up: %+v", s)
	}
	l := newLeash(t)
	w.create(script("p", l.holders()))
	await(t, "start", l.up)
	w.running("p")
	if s := inspect(t, dir); s.Pods["Running"] != 1 {
		t.Errorf("pods: %+v", s.Pods)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if err := local.Down(ctx, dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a Down that was called off: %v", err)
	}
	cancel()
	if err := local.Down(bounded(t), dir); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.gone:
	case <-time.After(time.Second): // the pipe's reader may be a moment late; the processes may not
		t.Error("processes are left after Down")
	}
	if s := inspect(t, dir); s.Running {
		t.Errorf("after: %+v", s)
	}
	if err := local.Down(bounded(t), dir); err != nil {
		t.Errorf("a second Down: %v", err)
	}
}

// A second Up finds the first cluster and says so, also when both start at once.
func TestUpTwice(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := local.Down(bounded(t), dir); err != nil {
			t.Error(err)
		}
	})
	outs := make([]strings.Builder, 4)
	var all sync.WaitGroup
	for i := range outs {
		all.Go(func() {
			if err := local.Up(bounded(t), local.Options{Dir: dir, Out: &outs[i]}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	started, found := 0, 0
	for i := range outs {
		if strings.Contains(outs[i].String(), "local cluster started at") {
			started++
		}
		if strings.Contains(outs[i].String(), "local cluster running already at") {
			found++
		}
	}
	if started != 1 || found != 3 {
		t.Errorf("%d started and %d found one, want 1 and 3", started, found)
	}
}

// When the cluster is killed nothing of any pod is left, and the next one starts clean, with the old kubeconfig valid and
// old versions answered with 410.
func TestKilledClusterLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	w, s := up(t, dir)
	l := newLeash(t)
	w.create(script("p", l.holders()))
	await(t, "start", l.up)
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "end of all processes", l.gone)
	_, again := up(t, dir)
	if again.PID == s.PID || again.URL != s.URL {
		t.Errorf("again: %+v, before: %+v; want another process at the same address", again, s)
	}
	pods, err := w.CoreV1().Pods("").List(t.Context(), everything) // by the client that was made from the old kubeconfig
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("pods after the restart: %v, %v", pods, err)
	}
}

// Only one cluster runs in a folder.
func TestOneInAFolder(t *testing.T) {
	w := newWorld(t, local.Options{})
	err := local.Serve(bounded(t), local.Options{Dir: w.dir})
	want := fmt.Sprintf("starting a local cluster in %s: a local cluster is running there already (process %d): "+
		"use it, end it with `retinue local down`, or choose another folder with --dir", w.dir, os.Getpid())
	if !errors.Is(err, local.ErrRunning) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Options that make no sense are refused together, and a port that is taken is named.
func TestBadOptions(t *testing.T) {
	err := local.Serve(bounded(t), local.Options{Dir: t.TempDir(), Port: 70_000, MaxPods: -1, CPU: resource.MustParse("-1")})
	if err == nil || !strings.Contains(err.Error(), "port: 70000 is not between 0 and 65535\nmax pods: -1 is negative\ncpu: -1 is negative") {
		t.Errorf("got %v", err)
	}
	w := newWorld(t, local.Options{})
	var port int
	if _, err := fmt.Sscanf(w.config.Host, "https://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]func(context.Context, local.Options) error{"serve": local.Serve, "up": local.Up} {
		err := start(bounded(t), local.Options{Dir: t.TempDir(), Port: port})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("opening port %d: ", port)) || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A kubeconfig and all else that opens the cluster is for its owner only.
func TestFilesAreTheOwnersOnly(t *testing.T) {
	w := newWorld(t, local.Options{})
	for _, name := range []string{"kubeconfig", "pki/token", "pki/server.key"} {
		info, err := os.Stat(filepath.Join(w.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// The program that started the cluster may end: the cluster lives on, until Down.
func TestOutlivesItsStarter(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(bounded(t), os.Args[0], "-test.run=^TestStarter$")
	cmd.Env = append(os.Environ(), "LOCAL_TEST_STARTER="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s := inspect(t, dir); !s.Ready {
		t.Errorf("after its starter has ended: %+v", s)
	}
	if err := local.Down(bounded(t), dir); err != nil {
		t.Error(err)
	}
}

// TestStarter is the program that ends at once in TestOutlivesItsStarter.
func TestStarter(t *testing.T) {
	dir := os.Getenv("LOCAL_TEST_STARTER")
	if dir == "" {
		t.Skip("only run by TestOutlivesItsStarter")
	}
	if err := local.Up(bounded(t), local.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
}

// A fleet of two hundred pods, created in parallel, all end well.
func TestManyPods(t *testing.T) {
	const many = 200
	w := newWorld(t, local.Options{MaxPods: 50})
	watcher, err := w.CoreV1().Pods("default").Watch(bounded(t), everything)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var creators sync.WaitGroup
	for c := range 8 {
		creators.Go(func() {
			for i := c; i < many; i += 8 {
				pod := script(fmt.Sprintf("p%d", i), "")
				pod.Spec.Containers[0].Command = []string{"true"}
				if _, err := w.CoreV1().Pods("default").Create(t.Context(), pod, create); err != nil {
					t.Errorf("creating pod %d: %v", i, err)
				}
			}
		})
	}
	creators.Wait()
	phases := map[string]int{}
	for event := range watcher.ResultChan() {
		if pod := podOf(t, event.Object); pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed" {
			phases[string(pod.Status.Phase)]++
		}
		if phases["Succeeded"]+phases["Failed"] == many {
			break
		}
	}
	if phases["Succeeded"] != many {
		t.Errorf("phases %v, want %d Succeeded", phases, many)
	}
}
