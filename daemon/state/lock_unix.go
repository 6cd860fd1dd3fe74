//go:build unix

package state

import (
	"os"
	"syscall"
)

// flock takes the file's lock, or fails at once if another process has it.
func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
