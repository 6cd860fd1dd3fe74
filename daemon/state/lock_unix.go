//go:build unix

package state

import (
	"os"
	"syscall"
)

// errHeld is what flock returns if another has the lock.
const errHeld = syscall.EWOULDBLOCK

// flock takes the file's lock, or fails at once if another has it.
func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
