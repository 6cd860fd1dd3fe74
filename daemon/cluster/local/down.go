package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// patience is how long a cluster may take to end its pods before it is killed, which ends them too.
const patience = 30 * time.Second

// Down ends the cluster in dir (DefaultDir() when empty) and returns when nothing of it is left: not its process, and
// no process of any pod. It succeeds when none is running.
func Down(ctx context.Context, dir string) error {
	dir, err := folder(dir)
	if err != nil {
		return err
	}
	at := places(dir)
	if _, err = os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // there has never been one
	}
	l, err := end(ctx, at)
	if err != nil {
		return fmt.Errorf("ending the local cluster in %s: %w", dir, err)
	}
	defer l.release()
	fence, err := waitLock(ctx, at.fence())
	if err != nil {
		return fmt.Errorf("waiting for the last processes of the local cluster in %s: %w", dir, err)
	}
	fence.release()
	return nil
}

// end ends the cluster's process and returns with its lock.
func end(ctx context.Context, at places) (*lock, error) {
	l, err := tryLock(at.lock())
	if l != nil || err != nil {
		return l, err
	}
	f, err := at.settledFacts(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding its process: %w", err)
	}
	if err := syscall.Kill(f.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("asking process %d to end: %w", f.PID, err)
	}
	gentle, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if l, err := waitLock(gentle, at.lock()); err == nil {
		return l, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := syscall.Kill(f.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("killing process %d: %w", f.PID, err)
	}
	return waitLock(ctx, at.lock())
}
