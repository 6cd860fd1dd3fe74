// Package fleet starts a local cluster and a daemon that works on it, for programs that show or measure what they do.
//
// It promises that the processes are those that ship, with nothing of them in this process; that Stop ends them in order, however far Start came;
// and that Stop complains of every process that is left.
package fleet

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
	"syscall"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/cluster/kube"
	"github.com/retinue-sched/retinue/daemon/cluster/local"
	"github.com/retinue-sched/retinue/sdk/client"
)

// stopTime is how long a program may take to end when it is told to.
const stopTime = 30 * time.Second

// Config says what is started and where.
type Config struct {
	// Dir is a folder of the fleet's own. It stays when the fleet has ended.
	Dir string
	// Bin is the folder of the programs retinued, retinue-executor and, if Up is not set, retinue.
	Bin string
	// Up starts the local cluster in a folder; `retinue local up` does when nil.
	Up func(ctx context.Context, dir string) error
	// Flags are given to retinued, after those that say where things are.
	Flags []string
}

// Fleet is a local cluster and a daemon.
type Fleet struct {
	Client  *client.Client
	Cluster *kube.Cluster

	cfg     Config
	up      bool // the local cluster was started, or half of it
	daemon  *exec.Cmd
	exited  chan struct{} // closed when the daemon has ended
	end     error         // how it did, once exited is closed
	stopped bool
}

// Start starts everything and returns once the daemon answers. Stop must be called whether or not it succeeds.
func Start(ctx context.Context, cfg Config) (*Fleet, error) {
	f := &Fleet{cfg: cfg, up: true}
	if err := f.startCluster(ctx); err != nil {
		return f, err
	}
	status, err := local.Inspect(ctx, f.path("cluster"))
	if err != nil {
		return f, err
	}
	reach := kube.DefaultConfig()
	reach.Kubeconfig = status.Kubeconfig
	if f.Cluster, err = kube.Connect(reach, slog.New(slog.DiscardHandler)); err != nil {
		return f, err
	}
	if err = f.startDaemon(status.Kubeconfig); err != nil {
		return f, err
	}
	if f.Client, err = client.New(client.Config{Address: "unix://" + f.path("d.sock")}); err != nil {
		return f, err
	}
	return f, f.reach(ctx)
}

func (f *Fleet) path(name string) string { return filepath.Join(f.cfg.Dir, name) }

// Program is the path of one of the programs.
func (f *Fleet) Program(name string) string { return filepath.Join(f.cfg.Bin, name) }

// PID is the daemon's.
func (f *Fleet) PID() int { return f.daemon.Process.Pid }

func (f *Fleet) startCluster(ctx context.Context) error {
	if f.cfg.Up != nil {
		return f.cfg.Up(ctx, f.path("cluster"))
	}
	up := exec.CommandContext(ctx, f.Program("retinue"), "local", "up", "--dir", f.path("cluster"))
	up.Env = f.environment()
	if text, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("starting the local cluster: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

func (f *Fleet) startDaemon(kubeconfig string) error {
	log, err := os.Create(f.path("retinued.log"))
	if err != nil {
		return fmt.Errorf("making the daemon's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the daemon has its own
	flags := append([]string{
		"--state", f.path("state"), "--listen.socket", f.path("d.sock"), "--cluster.kubeconfig", kubeconfig,
		"--executors.program", f.Program("retinue-executor"), "--telemetry.address=", "--telemetry.logFormat", "text",
	}, f.cfg.Flags...)
	f.daemon = exec.Command(f.Program("retinued"), flags...)
	f.daemon.Env = f.environment()
	f.daemon.Stdout, f.daemon.Stderr = log, log
	f.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this program, which stops the daemon in its turn
	if err := f.daemon.Start(); err != nil {
		return fmt.Errorf("starting retinued: %w", err)
	}
	f.exited = make(chan struct{})
	go func() {
		defer close(f.exited)
		f.end = f.daemon.Wait()
	}()
	return nil
}

// reach waits until the daemon answers. It does not wait for one that has ended.
func (f *Fleet) reach(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan error, 1)
	go func() {
		_, err := f.Client.Policies.ListPolicies(ctx, &apiv1.ListPoliciesRequest{}, grpc.WaitForReady(true))
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			return fmt.Errorf("waiting for retinued: %w", err)
		}
		return nil
	case <-f.exited:
		if f.end == nil {
			return errors.New("waiting for retinued: it has ended without a complaint: see its log")
		}
		return fmt.Errorf("waiting for retinued: it has ended: see its log: %w", f.end)
	}
}

// environment is this program's, with a mark by which everything that comes of it can be found.
func (f *Fleet) environment() []string { return append(os.Environ(), "FLEET_MARK="+f.cfg.Dir) }

// Stop ends what was started, in order, and checks that nothing is left. It may be called more than once.
func (f *Fleet) Stop() error {
	if f.stopped {
		return nil
	}
	f.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopTime)
	defer cancel()
	var errs []error
	if f.Client != nil {
		errs = append(errs, f.Client.Close())
	}
	errs = append(errs, f.stopDaemon())
	if f.up {
		errs = append(errs, local.Down(ctx, f.path("cluster")))
	}
	return errors.Join(append(errs, f.gone())...)
}

func (f *Fleet) stopDaemon() error {
	if f.exited == nil {
		return nil
	}
	_ = f.daemon.Process.Signal(syscall.SIGTERM) // it may have ended already, which exited tells
	select {
	case <-f.exited:
		if f.end != nil {
			return fmt.Errorf("stopping retinued: %w", f.end)
		}
		return nil
	case <-time.After(stopTime):
		_ = f.daemon.Process.Kill()
		<-f.exited
		return fmt.Errorf("stopping retinued: it did not end within %v and was killed", stopTime)
	}
}

// ShowLogs prints the end of each log.
func (f *Fleet) ShowLogs(ctx context.Context, out io.Writer) {
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
		fmt.Fprintf(out, "--- end of %s\n%s\n", filepath.Base(name), text[max(0, len(text)-most):])
	}
}

// Pods lists the pods of an application in the namespace default, and the version of the cluster at that moment.
func (f *Fleet) Pods(ctx context.Context, app string) (pods []corev1.Pod, version string, err error) {
	version, err = f.Cluster.List(ctx, cluster.Query{Namespace: "default", Selector: "retinue.dev/app=" + app}, func(p *corev1.Pod) {
		pods = append(pods, *p.DeepCopy())
	})
	return pods, version, err
}
