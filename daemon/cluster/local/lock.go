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

// lookAgain is how often a lock is tried while somebody waits for it; only starting and ending a cluster ever does.
const lookAgain = 10 * time.Millisecond

// lock is a file that one process at a time holds, until it ends.
type lock struct{ file *os.File }

// tryLock takes the lock, or returns nil when it is held.
func tryLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &lock{file: f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil //nolint:nilnil // held by another
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// held reports whether somebody has the lock. Who only looks does not keep others who look from seeing the truth.
func held(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// waitLock takes the lock as soon as it is free.
func waitLock(ctx context.Context, path string) (*lock, error) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		l, err := tryLock(path)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// glance is longer than anybody holds a lock only to see whether it is free.
const glance = 200 * time.Millisecond

// takeLock takes the lock, or returns nil when somebody keeps it.
func takeLock(ctx context.Context, path string) (*lock, error) {
	soon, cancel := context.WithTimeoutCause(ctx, glance, errKept)
	defer cancel()
	l, err := waitLock(soon, path)
	if errors.Is(err, errKept) {
		return nil, nil //nolint:nilnil // held by another
	}
	return l, err
}

var errKept = errors.New("somebody keeps it")

func (l *lock) release() { l.file.Close() }
