package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/cluster/local"
	"github.com/retinue-sched/retinue/sdk/client"
)

// stopTime is how long a program may take to end when it is told to.
const stopTime = 30 * time.Second

// fleet is what the demo starts: a local cluster and a daemon, in a folder of their own.
type fleet struct {
	dir, bin string
	out      io.Writer

	up      bool // the local cluster was started
	daemon  *exec.Cmd
	exited  chan error // the daemon's end
	client  *client.Client
	cluster *kube.Cluster
	stopped bool
}

func (f *fleet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fleet) program(name string) string { return filepath.Join(f.bin, name) }

// start starts everything and connects to it.
func (f *fleet) start(ctx context.Context) error {
	up := exec.CommandContext(ctx, f.program("retinue"), "local", "up", "--dir", f.path("cluster"))
	up.Env = f.environment()
	f.up = true
	if text, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("starting the local cluster: %w: %s", err, bytes.TrimSpace(text))
	}
	status, err := local.Inspect(ctx, f.path("cluster"))
	if err != nil {
		return err
	}
	cfg := kube.DefaultConfig()
	cfg.Kubeconfig = status.Kubeconfig
	if f.cluster, err = kube.Connect(cfg, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err = f.startDaemon(status.Kubeconfig); err != nil {
		return err
	}
	f.client, err = client.New(client.Config{Address: "unix://" + f.path("d.sock")})
	return err
}

func (f *fleet) startDaemon(kubeconfig string) error {
	log, err := os.Create(f.path("retinued.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the daemon has its own
	f.daemon = exec.Command(f.program("retinued"),
		"--state", f.path("state"), "--listen.socket", f.path("d.sock"), "--cluster.kubeconfig", kubeconfig,
		"--executors.program", f.program("retinue-executor"), "--telemetry.address=", "--telemetry.logFormat", "text")
	f.daemon.Env = f.environment()
	f.daemon.Stdout, f.daemon.Stderr = log, log
	f.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo, which stops the daemon in its turn
	if err := f.daemon.Start(); err != nil {
		return fmt.Errorf("starting retinued: %w", err)
	}
	f.exited = make(chan error, 1)
	go func() { f.exited <- f.daemon.Wait() }()
	return nil
}

// environment is this program's, with a mark by which everything that comes of it can be found.
func (f *fleet) environment() []string {
	return append(os.Environ(), "RETINUE_CI_DEMO="+f.dir)
}

// stop ends what was started, in order, and checks that nothing is left. It may be called more than once.
func (f *fleet) stop(ctx context.Context) error {
	if f.stopped {
		return nil
	}
	f.stopped = true
	ctx, cancel := context.WithTimeout(ctx, 2*stopTime)
	defer cancel()
	var errs []error
	if f.client != nil {
		errs = append(errs, f.client.Close())
	}
	errs = append(errs, f.stopDaemon())
	if f.up {
		if err := local.Down(ctx, f.path("cluster")); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, f.gone())
	return errors.Join(errs...)
}

// gone waits a moment for what was told to end, and complains of what has not.
func (f *fleet) gone() error {
	const moment = 5 * time.Second
	for deadline := time.Now().Add(moment); ; time.Sleep(20 * time.Millisecond) {
		left := f.survivors()
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes were left behind: %s", strings.Join(left, "; "))
		}
	}
}

func (f *fleet) stopDaemon() error {
	if f.exited == nil {
		return nil
	}
	_ = f.daemon.Process.Signal(syscall.SIGTERM) // it may have ended already, which exited tells
	select {
	case err := <-f.exited:
		if err != nil {
			return fmt.Errorf("stopping retinued: %w", err)
		}
		return nil
	case <-time.After(stopTime):
		_ = f.daemon.Process.Kill()
		_ = <-f.exited // killed, as the next line says
		return fmt.Errorf("stopping retinued: it did not end within %v and was killed", stopTime)
	}
}

// survivors lists processes that still work in the demo's folder or carry its mark.
func (f *fleet) survivors() []string {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var left []string
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(name, "environ")) // gone meanwhile, or somebody else's
		cmdline, _ := os.ReadFile(filepath.Join(name, "cmdline"))
		if bytes.Contains(environ, []byte(f.dir)) || bytes.Contains(cmdline, []byte(f.dir)) {
			left = append(left, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return left
}

// showLogs prints the end of each log.
func (f *fleet) showLogs(ctx context.Context) {
	logs := []string{f.path("retinued.log")}
	if status, err := local.Inspect(ctx, f.path("cluster")); err == nil {
		logs = append(logs, status.Log)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		const most = 4000
		if len(text) > most {
			text = text[len(text)-most:]
		}
		fmt.Fprintf(f.out, "--- end of %s\n%s\n", filepath.Base(name), text)
	}
}

// pods lists the pods of an application.
func (f *fleet) pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	_, err := f.cluster.List(ctx, cluster.Query{Namespace: "default", Selector: "retinue.dev/app=" + app}, func(p *corev1.Pod) {
		pods = append(pods, *p.DeepCopy())
	})
	return pods, err
}

// process returns the process of a pod, as the local cluster tells it.
func process(p *corev1.Pod) (int, bool) {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			continue
		}
		if id, ok := strings.CutPrefix(c.ContainerID, "process://"); ok {
			if pid, err := strconv.Atoi(id); err == nil {
				return pid, true
			}
		}
	}
	return 0, false
}
