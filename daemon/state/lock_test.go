package state

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Only a lock that another holds means "in use": a file system without locks is another matter, and said so.
func TestOnlyAHeldLockMeansInUse(t *testing.T) {
	lock, err := os.Create(filepath.Join(t.TempDir(), lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	for errno, inUse := range map[syscall.Errno]bool{syscall.EWOULDBLOCK: true, syscall.ENOLCK: false, syscall.EOPNOTSUPP: false, syscall.EINTR: false} {
		err := refusal("dir", lock, errno)
		if errors.Is(err, ErrInUse) != inUse || (!inUse && !errors.Is(err, errno)) {
			t.Errorf("%v gave %v", errno, err)
		}
	}
}
