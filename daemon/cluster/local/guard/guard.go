package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// drain is how long the output of a dead container may still arrive, for a pipe that somebody outside holds open.
const drain = time.Second

// Main is the whole life of a guard: it reads a Spec and then orders from standard input, runs the container, and
// reports on standard output. It returns the exit code for the process.
func Main() int {
	runtime.LockOSThread() // the container must not outlive this thread, and it never ends before the process
	adoptOrphans()
	shield()
	orders := bufio.NewReader(os.Stdin)
	reports := json.NewEncoder(os.Stdout)
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return 0 // the host is gone before it asked for anything
	}
	var spec Spec
	if err = json.Unmarshal(line, &spec); err != nil {
		fmt.Fprintln(os.Stderr, "retinue guard: reading what to run:", err)
		return 1
	}
	c, err := begin(spec)
	if err != nil {
		reports.Encode(report{Refused: err.Error()}) //nolint:errcheck // nobody is left to hear of it
		return 0
	}
	reports.Encode(report{Started: &c.started, PID: c.pid}) //nolint:errcheck // a host that is gone shows in the orders
	go c.obey(orders)
	end := c.reap()
	c.output.finish(drain)
	reports.Encode(report{Ended: &end}) //nolint:errcheck // nobody is left to hear of it
	return 0
}

// container is the running process in its guard.
type container struct {
	pid     int
	started time.Time
	output  *output

	mu     sync.Mutex
	ended  bool // the container's own process has been reaped: its id may be another's
	ending bool // everything is to be killed
}

func begin(spec Spec) (*container, error) {
	path, err := lookUp(spec)
	if err != nil {
		return nil, err
	}
	out, err := newOutput(spec)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(path, spec.Argv, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []uintptr{null.Fd(), out.stdout.write.Fd(), out.stderr.write.Fd()},
		Sys:   attributes(),
	})
	out.closeWriters()
	if err != nil {
		return nil, fmt.Errorf("exec %s: %w", path, err)
	}
	out.pump()
	return &container{pid: pid, started: time.Now(), output: out}, nil
}

// obey carries out the host's orders until the pipe ends, which is the last order.
func (c *container) obey(orders io.ByteReader) {
	for {
		order, err := orders.ReadByte()
		switch {
		case err != nil || order == orderKill:
			c.killAll()
		case order == orderTerminate:
			c.signal(syscall.SIGTERM)
		}
		if err != nil {
			return
		}
	}
}

func (c *container) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		syscall.Kill(c.pid, sig) //nolint:errcheck // it has just ended by itself
	}
}

func (c *container) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	c.killRest()
}

// killRest kills what is there now. What a dying process leaves to the guard is found at its next call, which reap
// makes for each process that ends.
func (c *container) killRest() {
	if !c.ended {
		syscall.Kill(c.pid, syscall.SIGKILL) //nolint:errcheck // it has just ended by itself
	}
	killChildren(c.pid)
}

// reap waits for every process below the guard and returns how the container's own ended. Once that has ended, the
// others are killed.
func (c *container) reap() Exit {
	var end Exit
	for {
		var ws syscall.WaitStatus
		pid, err := waitAny(c.pid, &ws)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return end
		case pid == c.pid && (ws.Exited() || ws.Signaled()):
			end = exitOf(ws)
			c.finished(true)
		default:
			c.finished(false)
		}
	}
}

func (c *container) finished(own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own {
		c.ended, c.ending = true, true
	}
	if c.ending {
		c.killRest()
	}
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: ws.Signal(), At: time.Now()}
	}
	return Exit{Code: ws.ExitStatus(), At: time.Now()}
}
