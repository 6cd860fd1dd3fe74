//go:build !linux

package executor

import (
	"os"
	"os/exec"
	"syscall"
)

// adopt does nothing: no other system lets a process be the parent of orphans. What leaves its process group escapes.
func (t *tree) adopt() error { return nil }

func (t *tree) ask(cmd *exec.Cmd)  { t.signal(cmd, syscall.SIGTERM, syscall.SIGCONT) }
func (t *tree) kill(cmd *exec.Cmd) { t.signal(cmd, syscall.SIGKILL) }

func (t *tree) signal(cmd *exec.Cmd, signals ...syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mains[cmd.Process.Pid] {
		return
	}
	for _, s := range signals {
		_ = syscall.Kill(-cmd.Process.Pid, s)
	}
}

// wait waits until a program has ended, and ends what is left of its group.
func (t *tree) wait(cmd *exec.Cmd, _ ref) (*os.ProcessState, error) {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mains, cmd.Process.Pid)
	return cmd.ProcessState, err
}

func (t *tree) reap() {}

func (t *tree) memory() uint64 { return 0 }
