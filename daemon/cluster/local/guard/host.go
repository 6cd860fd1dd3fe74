package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// StartError says why a container's process could not be started, in the words of a container runtime.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return e.Reason }

// Process is a running container and its guard, seen from the host.
type Process struct {
	cmd     *exec.Cmd
	orders  *os.File
	reports *json.Decoder
	started time.Time
	pid     int

	mu     sync.Mutex // a write to orders must not meet its close
	closed bool
}

// Start starts executable as a guard that runs spec, and waits until the process runs. Every call must be followed by
// Wait unless it returns an error, which is a StartError when the process itself cannot be started. fence, when not
// nil, is kept open by the guard as long as anything of the container may be left.
func Start(executable string, spec Spec, fence *os.File) (*Process, error) {
	orders, p, out, err := launch(executable, fence)
	if err != nil {
		return nil, fmt.Errorf("starting a guard: %w", err)
	}
	p.orders, p.reports = orders, json.NewDecoder(out)
	if err = json.NewEncoder(orders).Encode(spec); err != nil {
		return nil, fmt.Errorf("telling the guard what to run: %w", errors.Join(err, p.finish()))
	}
	var first report
	err = p.reports.Decode(&first)
	switch {
	case err == nil && first.Refused != "":
		p.finish() //nolint:errcheck // the report says more
		return nil, &StartError{Reason: first.Refused}
	case err != nil || first.Started == nil:
		return nil, fmt.Errorf("waiting for the guard: it ended before the process ran: %w", errors.Join(err, p.finish()))
	}
	p.started, p.pid = *first.Started, first.PID
	return p, nil
}

func launch(executable string, fence *os.File) (*os.File, *Process, io.Reader, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer read.Close()
	cmd := exec.Command(executable)
	cmd.Args = []string{Argv0}
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=single"}
	cmd.Dir = "/"
	cmd.Stdin = read
	cmd.Stderr = os.Stderr                               // only a crash of the guard writes there
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's interrupt is for the host to act on
	if fence != nil {
		cmd.ExtraFiles = []*os.File{fence}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		write.Close()
		return nil, nil, nil, err
	}
	return write, &Process{cmd: cmd}, out, nil
}

// Started returns when the process began.
func (p *Process) Started() time.Time { return p.started }

// PID returns the process id of the container's own process.
func (p *Process) PID() int { return p.pid }

// Guard returns the process id of the guard.
func (p *Process) Guard() int { return p.cmd.Process.Pid }

// Terminate asks the container's process to end, by SIGTERM.
func (p *Process) Terminate() { p.order(orderTerminate) }

// Kill ends the container's process and everything below it.
func (p *Process) Kill() { p.order(orderKill) }

func (p *Process) order(o byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if _, err := p.orders.Write([]byte{o}); err != nil {
		return // the guard has ended: so has everything it guarded
	}
}

// Wait waits until the process and everything it started have ended.
func (p *Process) Wait() Exit {
	var last report
	err := p.reports.Decode(&last)
	p.finish() //nolint:errcheck // the report says more, and its absence too
	if err != nil || last.Ended == nil {
		return Exit{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL, At: time.Now(), Lost: true}
	}
	return *last.Ended
}

// finish lets the guard go and waits for it.
func (p *Process) finish() error {
	p.mu.Lock()
	p.closed = true
	p.orders.Close()
	p.mu.Unlock()
	return p.cmd.Wait()
}
