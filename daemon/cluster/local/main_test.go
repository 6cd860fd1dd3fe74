package local_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// The test program is the cluster's program: it is started again as cluster and as guards.
func TestMain(m *testing.M) {
	if code, entered := local.Entered(); entered {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// world is a local cluster in this process, and a client of it.
type world struct {
	*kubernetes.Clientset

	t      testing.TB
	dir    string
	config *rest.Config
	stop   func()
}

// newWorld serves a cluster until the test ends.
func newWorld(t testing.TB, o local.Options) *world {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan local.Status, 1), make(chan error, 1)
	o.Ready = func(s local.Status) { ready <- s }
	go func() { ended <- local.Serve(ctx, o) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("serving: %v", err)
	}
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	}
	t.Cleanup(stop)
	w := connect(t, o.Dir)
	w.stop = stop
	return w
}

// connect makes a client from the kubeconfig in dir.
func connect(t testing.TB, dir string) *world {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{Clientset: client, t: t, dir: dir, config: config}
}

// script is a pod that runs one shell script and is not restarted.
func script(name, text string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "local", Command: []string{"sh", "-c", text}}},
		},
	}
}

func (w *world) create(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	created, err := w.CoreV1().Pods("default").Create(w.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	return created
}

// until watches the pod and returns its first state for which ok holds; nil stands for a pod that is gone.
func (w *world) until(name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	pods := w.CoreV1().Pods("default")
	watcher, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		w.t.Fatalf("watching pod %s: %v", name, err)
	}
	defer watcher.Stop()
	if _, err := pods.Get(ctx, name, metav1.GetOptions{}); err != nil && ok(nil) {
		return nil
	}
	var last *corev1.Pod
	for event := range watcher.ResultChan() {
		pod, is := event.Object.(*corev1.Pod)
		switch {
		case !is:
			w.t.Fatalf("watching pod %s: %v", name, event.Object)
		case event.Type == "DELETED":
			if ok(nil) {
				return nil
			}
			w.t.Fatalf("pod %s went away before it was %s", name, what)
		case ok(pod):
			return pod
		}
		last = pod
	}
	w.t.Fatalf("pod %s is not %s after 30 s: %+v", name, what, last)
	return nil
}

func (w *world) ended(name string) *corev1.Pod {
	w.t.Helper()
	return w.until(name, "ended", func(p *corev1.Pod) bool {
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
}

func (w *world) running(name string) {
	w.t.Helper()
	w.until(name, "running", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodRunning })
}

func (w *world) gone(name string) {
	w.t.Helper()
	w.until(name, "gone", func(p *corev1.Pod) bool { return p == nil })
}

func (w *world) logs(name string, opts *corev1.PodLogOptions) string {
	w.t.Helper()
	text, err := w.CoreV1().Pods("default").GetLogs(name, opts).DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatalf("logs of pod %s: %v", name, err)
	}
	return string(text)
}

func terminated(t testing.TB, pod *corev1.Pod) *corev1.ContainerStateTerminated {
	t.Helper()
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Fatalf("pod %s has no terminated container: %+v", pod.Name, pod.Status)
	}
	return pod.Status.ContainerStatuses[0].State.Terminated
}

// leash is a named pipe that processes hold open: up tells that one has written to it, gone that none is left.
type leash struct {
	path     string
	up, gone chan string
}

func newLeash(t testing.TB) *leash {
	t.Helper()
	l := &leash{path: filepath.Join(t.TempDir(), "fifo"), up: make(chan string, 1), gone: make(chan string, 1)}
	if err := syscall.Mkfifo(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.Open(l.path)
		if err != nil {
			l.up <- err.Error()
			return
		}
		defer f.Close()
		first := make([]byte, 3)
		_, err = io.ReadFull(f, first)
		l.up <- strings.TrimSpace(string(first)) + fmt.Sprint(err)
		rest, err := io.ReadAll(f)
		l.gone <- string(rest) + fmt.Sprint(err)
	}()
	return l
}

// holders is a script of processes that hold the leash: one in a session of its own, an orphan of that, and the first,
// all deaf to SIGTERM.
func (l *leash) holders() string {
	return `exec 9>` + l.path + `; trap "" TERM HUP; setsid sh -c '(setsid sleep 600 &); sleep 600' & echo up >&9; sleep 600`
}

func await(t testing.TB, what string, from <-chan string) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: still waiting after 30 s", what)
	}
}
