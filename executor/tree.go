package executor

import (
	"os/exec"
	"sync"
)

// tree is the processes below this one: the programs that were started, which are waited for by name, and whatever those left behind.
type tree struct {
	alone bool
	mu    sync.Mutex   // held while a program starts, so that nobody takes it for one left behind
	mains map[int]bool // programs that were started and not yet waited for
}

func newTree(alone bool) *tree { return &tree{alone: alone, mains: map[int]bool{}} }

// start starts a program.
func (t *tree) start(cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	t.mains[cmd.Process.Pid] = true
	return nil
}
