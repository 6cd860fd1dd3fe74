package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/cluster/local"
	"github.com/retinue-sched/retinue/plugins/modules"
	"github.com/retinue-sched/retinue/test/fleet"
)

// executors is how many the fleet has that is measured.
const executors = 6

// patience bounds the wait for something that usually takes a second or two.
const patience = time.Minute

// withFleet starts a fleet in a folder of its own for work, and ends it whatever happens.
func withFleet(ctx context.Context, set settings, work func(*fleet.Fleet) error) (err error) {
	dir, err := os.MkdirTemp("", "retinue-bench-")
	if err != nil {
		return fmt.Errorf("making a folder to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := set.bin
	if bin == "" {
		bin = filepath.Join(dir, "bin")
		if err = fleet.Build(ctx, bin, "cmd/retinued", "cmd/retinue-executor"); err != nil {
			return err
		}
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return fmt.Errorf("finding the programs: %w", err)
	}
	f, err := fleet.Start(ctx, fleet.Config{
		Dir: dir, Bin: bin, Up: func(ctx context.Context, dir string) error { return local.Up(ctx, local.Options{Dir: dir}) },
	})
	defer func() {
		if err != nil {
			f.ShowLogs(context.WithoutCancel(ctx), os.Stderr)
		}
		err = errors.Join(err, f.Stop()) //nolint:contextcheck // what was started is stopped also when ctx is done
	}()
	if err != nil {
		return err
	}
	if err = compiled(ctx, f); err != nil {
		return err
	}
	return work(f)
}

// compiled waits until the daemon has compiled the shipped policies, which takes a core for seconds and must not be part of what is measured.
func compiled(ctx context.Context, f *fleet.Fleet) error {
	return until(ctx, "the shipped policies", func(ctx context.Context) (bool, error) {
		list, err := f.Client.Policies.ListPolicies(ctx, &apiv1.ListPoliciesRequest{})
		return len(list.GetPolicies()) >= len(modules.Shipped()), err
	})
}

// apply makes an application with executors that stay, and waits until all are there.
func apply(ctx context.Context, f *fleet.Fleet, app string, profile *apiv1.ProfileSpec) error {
	profile.Target, profile.Min, profile.Max = executors, executors, executors
	_, err := f.Client.Applications.ApplyApplication(ctx, &apiv1.ApplyApplicationRequest{
		MustBeNew: true, Spec: &apiv1.ApplicationSpec{Id: app, Profiles: []*apiv1.ProfileSpec{profile}},
	}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("making application %s: %w", app, err)
	}
	return until(ctx, fmt.Sprintf("%d executors", executors), func(ctx context.Context) (bool, error) {
		got, err := f.Client.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: app})
		if err != nil {
			return false, err
		}
		return got.GetApplication().GetStatus().GetProfiles()[0].GetRegistered() == executors, nil
	})
}

// remove deletes an application, so that it takes no part in what is measured next.
func remove(ctx context.Context, f *fleet.Fleet, app string) error {
	if _, err := f.Client.Applications.DeleteApplication(ctx, &apiv1.DeleteApplicationRequest{Application: app}); err != nil {
		return fmt.Errorf("deleting application %s: %w", app, err)
	}
	return nil
}

// until asks again and again whether something is so.
func until(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not happen within %v", patience))
	defer cancel()
	for {
		is, err := so(ctx)
		if is || err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
