package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/sdk/client"
	"github.com/retinue-sched/retinue/test/fleet"
)

const (
	app       = "audit"
	executors = 6
	minTasks  = 1000
)

// demo is one run.
type demo struct {
	settings
	dir    string
	fleet  *fleet.Fleet
	screen *screen
	out    io.Writer

	mu      sync.Mutex
	tasks   int
	ended   int
	outputs map[string][]byte // by task
	took    []time.Duration
	half    chan struct{} // closed when half of the tasks have ended

	began, over time.Time // of the job
	elastic     string    // digest
	killed      int
	final       *apiv1.Application
	identical   bool
}

// work does everything up to the comparison.
func (d *demo) work(ctx context.Context) error {
	folders, err := d.folders(ctx)
	if err != nil {
		return err
	}
	if err := d.compiled(ctx); err != nil {
		return err
	}
	if err := d.apply(ctx); err != nil {
		return err
	}
	d.tasks, d.half, d.outputs = len(folders), make(chan struct{}), make(map[string][]byte, len(folders))
	d.began = time.Now()
	parts, partsCtx := errgroup.WithContext(ctx)
	following, stopFollowing := context.WithCancel(partsCtx)
	parts.Go(func() error { return d.follow(following) })
	parts.Go(func() error {
		defer stopFollowing()
		return d.job(partsCtx, folders)
	})
	if err := parts.Wait(); err != nil {
		return err
	}
	d.over = time.Now()
	d.screen.done(d.progress())
	return d.finish(ctx)
}

// errOver ends what waits for the job to be at work.
var errOver = errors.New("the job was over before the policy was swapped and an executor killed")

// job runs the job, and disturbs it while it runs.
func (d *demo) job(ctx context.Context, folders []string) error {
	work, workCtx := errgroup.WithContext(ctx)
	running, over := context.WithCancelCause(workCtx)
	defer over(nil)
	work.Go(func() error {
		defer over(errOver)
		return d.submit(workCtx, folders)
	})
	work.Go(func() error {
		err := d.disturb(running)
		if cause := context.Cause(running); err != nil && cause != nil {
			return cause
		}
		return err
	})
	return work.Wait()
}

// compiled waits until the daemon has compiled the shipped policies: that takes a core for seconds, and the swap is to come while the job runs.
func (d *demo) compiled(ctx context.Context) error {
	for {
		list, err := d.fleet.Client.Policies.ListPolicies(ctx, &apiv1.ListPoliciesRequest{}, grpc.WaitForReady(true))
		if err != nil {
			return fmt.Errorf("waiting for the policies to be compiled: %w", err)
		}
		if len(list.GetPolicies()) >= len(modules.Shipped()) {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// folders lists what is audited, one task each.
func (d *demo) folders(ctx context.Context) ([]string, error) {
	if d.root == "" {
		root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("finding the Go toolchain: %w", err)
		}
		d.root = strings.TrimSpace(string(root)) + "/src"
	}
	text, err := d.audit(ctx, nil, "list", "-root", d.root)
	if err != nil {
		return nil, err
	}
	folders := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if d.limit > 0 && len(folders) > d.limit {
		folders = folders[:d.limit]
	} else if len(folders) < minTasks {
		return nil, fmt.Errorf("listing %s: it has %d folders with files, the demo wants at least %d", d.root, len(folders), minTasks)
	}
	return folders, nil
}

// audit runs the example program here.
func (d *demo) audit(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.fleet.Program("audit"), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	text, err := cmd.Output()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		return nil, fmt.Errorf("running audit %s: %w: %s", args[0], err, bytes.TrimSpace(exit.Stderr))
	}
	return text, err
}

// apply creates the application: one executor to begin with, more as tasks wait, decided by direct.
func (d *demo) apply(ctx context.Context) error {
	soon := durationpb.New(200 * time.Millisecond)
	_, err := d.fleet.Client.Applications.ApplyApplication(ctx, &apiv1.ApplyApplicationRequest{MustBeNew: true, Spec: &apiv1.ApplicationSpec{
		Id: app, Policy: &apiv1.PolicyBinding{Policy: "direct"},
		Profiles: []*apiv1.ProfileSpec{{
			Name: "auditor", Slots: 1, Target: 1, Min: 1, Max: executors,
			DynamicAllocation: &apiv1.DynamicAllocation{Enabled: true, BacklogTimeout: soon, SustainedBacklogTimeout: soon},
		}},
	}}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("creating the application: %w", err)
	}
	return nil
}

func (d *demo) submit(ctx context.Context, folders []string) error {
	job := client.Job{Application: app, Name: "audit", Changed: d.changed}
	for _, folder := range folders {
		job.Tasks = append(job.Tasks, &apiv1.TaskSpec{
			Key: folder, Command: []string{d.fleet.Program("audit"), "-root", d.root, folder},
		})
	}
	return d.fleet.Client.Run(ctx, job)
}

// changed sees tasks as they change.
func (d *demo) changed(t *apiv1.Task) {
	if t.GetState() < apiv1.TaskState_TASK_STATE_SUCCEEDED {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended++
	d.outputs[t.GetKey()] = t.GetResult().GetOutput()
	d.took = append(d.took, t.GetResult().GetTook().AsDuration())
	if d.ended == (d.tasks+1)/2 {
		close(d.half)
	}
}

func (d *demo) progress() (ended, tasks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended, d.tasks
}

// follow shows the fleet as it changes.
func (d *demo) follow(ctx context.Context) error {
	stream, err := d.fleet.Client.Applications.WatchApplications(ctx, &apiv1.WatchApplicationsRequest{Application: app})
	if err != nil {
		return err
	}
	for {
		msg, err := stream.Recv()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the job is over, and with it the watch
		default:
			return fmt.Errorf("watching the application: %w", err)
		}
		for _, a := range msg.GetApplications() {
			ended, tasks := d.progress()
			d.screen.show(ended, tasks, a.GetStatus())
		}
	}
}

// disturb swaps the policy and kills a busy executor once half of the tasks have ended.
func (d *demo) disturb(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.half:
	}
	bound, err := d.fleet.Client.Policies.BindPolicy(ctx, &apiv1.BindPolicyRequest{
		Application: app, Binding: &apiv1.PolicyBinding{Policy: "elastic"}, Mode: "scale",
	})
	if err != nil {
		return fmt.Errorf("swapping the policy: %w", err)
	}
	d.elastic = bound.GetPolicy().GetDigest()
	return d.kill(ctx)
}

// kill ends a busy executor's process without warning. The process is frozen first, so that it cannot finish what it has between the look and the blow.
func (d *demo) kill(ctx context.Context) error {
	victim, pid, err := d.freeze(ctx)
	if err != nil {
		return err
	}
	for {
		busy, err := d.busy(ctx, victim)
		if err != nil {
			return err
		}
		if busy {
			break
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing executor %d: %w", victim, err)
	}
	d.killed++
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (d *demo) list(ctx context.Context) ([]*apiv1.Executor, error) {
	return d.fleet.Client.Executors(ctx, app, "")
}

// freeze stops the process of an executor that has a task.
func (d *demo) freeze(ctx context.Context) (victim uint64, pid int, err error) {
	for {
		list, err := d.list(ctx)
		if err != nil {
			return 0, 0, err
		}
		pods, _, err := d.fleet.Pods(ctx, app)
		if err != nil {
			return 0, 0, err
		}
		for _, e := range list {
			if !e.GetRegistered() || e.GetBusy() == 0 {
				continue
			}
			at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == e.GetPodName() })
			if at < 0 {
				continue
			}
			if pid, ok := fleet.Process(&pods[at]); ok {
				return e.GetId(), pid, os.NewSyscallError("SIGSTOP", syscall.Kill(pid, syscall.SIGSTOP))
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, 0, err
		}
	}
}

// busy reports whether the daemon has given the executor a task that it has not reported.
func (d *demo) busy(ctx context.Context, victim uint64) (bool, error) {
	list, err := d.list(ctx)
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if e.GetId() == victim {
			return e.GetBusy() > 0, nil
		}
	}
	return false, fmt.Errorf("executor %d is gone before it was killed", victim)
}

// finish compares the job's report with one made by a plain sequential run, and ends the application.
func (d *demo) finish(ctx context.Context) error {
	got, err := d.fleet.Client.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: app})
	if err != nil {
		return fmt.Errorf("asking how it went: %w", err)
	}
	d.final = got.GetApplication()
	var pieces []byte
	for _, piece := range d.outputs { // in whatever order: the reduction must not care
		pieces = append(pieces, piece...)
	}
	reduced, err := d.audit(ctx, pieces, "reduce")
	if err != nil {
		return err
	}
	if err = d.compare(ctx, reduced); err != nil {
		return err
	}
	if _, err = d.fleet.Client.Applications.DeleteApplication(ctx, &apiv1.DeleteApplicationRequest{Application: app}); err != nil {
		return fmt.Errorf("deleting the application: %w", err)
	}
	pods, _, err := d.fleet.Pods(ctx, app)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return fmt.Errorf("the application is deleted and %d of its pods are still there", len(pods))
	}
	return d.check()
}

func (d *demo) compare(ctx context.Context, reduced []byte) error {
	var plain []byte
	var err error
	if d.limit > 0 {
		folders := make([]string, 0, len(d.outputs))
		for folder := range d.outputs {
			folders = append(folders, folder)
		}
		slices.Sort(folders)
		if plain, err = d.audit(ctx, nil, append([]string{"-root", d.root}, folders...)...); err == nil {
			plain, err = d.audit(ctx, plain, "reduce")
		}
	} else {
		plain, err = d.audit(ctx, nil, "run", "-root", d.root)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(plain, reduced) {
		_ = os.WriteFile(filepath.Join(d.dir, "plain"), plain, 0o600)
		_ = os.WriteFile(filepath.Join(d.dir, "reduced"), reduced, 0o600)
		return fmt.Errorf("the report (%d bytes) is not the one of a plain run (%d bytes): run with -keep and compare the files plain and reduced", len(reduced), len(plain))
	}
	d.identical = true
	return nil
}
