//go:build !linux

package guard

import (
	"os"
	"os/signal"
	"syscall"
)

// adoptOrphans does nothing: no other system lets a process adopt.
func adoptOrphans() {}

// shield keeps signals that are meant for the host from ending the guard before its work is done, and the fence from
// being inherited.
func shield() {
	// Not signal.Ignore: the container would inherit that, and be deaf to SIGTERM.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	for fd := 3; fd < 8; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitAny waits for the container's own process: there are no others to wait for.
func waitAny(pid int, ws *syscall.WaitStatus) (int, error) { return syscall.Wait4(pid, ws, 0, nil) }

// killChildren kills the container's process group. What has left it escapes.
func killChildren(group int) {
	syscall.Kill(-group, syscall.SIGKILL) //nolint:errcheck // nobody is left in it
}
