// Package executor is the process in an executor's pod: it registers with the daemon, runs the tasks that it is given in slots, and reports
// what became of them.
//
// It promises:
//
//   - an attempt that it is given runs at most once here, however often it is given, and its end is reported until it is acknowledged;
//   - a task's processes are gone when its end is reported, those that left its process group or its session included (on Linux);
//   - a task's output is bounded, and a task that writes more is neither blocked nor remembered;
//   - no daemon for longer than the lease means no tasks: they are ended, and so is the executor;
//   - nothing grows without a bound: launches, early kills, reports, output.
//
// One agent to a process: on Linux it makes the process adopt the orphans below it.
package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrRefused reports that the daemon does not want this executor: its credential is not good, or its number was given up. Trying again is pointless.
var ErrRefused = errors.New("the daemon refused this executor")

// ErrAbandoned reports that the daemon could not be reached for longer than the lease.
var ErrAbandoned = errors.New("the daemon is gone")

// Exit codes of an executor's process.
const (
	ExitDone      = 0 // the daemon said stop, or the executor was told to leave and has left
	ExitFailure   = 1 // it could not start: configuration, work folder
	ExitRefused   = 3 // ErrRefused
	ExitAbandoned = 4 // ErrAbandoned
)

// ExitCode returns the exit code that tells how Run ended.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, ErrRefused):
		return ExitRefused
	case errors.Is(err, ErrAbandoned):
		return ExitAbandoned
	default:
		return ExitFailure
	}
}

// errStopped and errLeft are how a life ends well.
var (
	errStopped = errors.New("the daemon stopped this executor")
	errLeft    = errors.New("this executor has left")
)

// Agent is an executor.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	tree    *tree
	ledger  *ledger
	running sync.WaitGroup
	output  atomic.Int64  // bytes of standard output to keep
	folder  string        // in which attempts get theirs
	lease   time.Duration // the daemon's word, once it was heard
	bye     chan struct{} // closed when everything is done and the daemon shall be left
}

// New makes an agent. It does nothing before Run.
func New(cfg Config, log *slog.Logger) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the configuration of the executor: %w", err)
	}
	a := &Agent{
		cfg: cfg, log: log.With(slog.String("application", cfg.Application), slog.Uint64("executor", cfg.Executor)),
		tree: newTree(cfg.Alone), lease: cfg.Lease, bye: make(chan struct{}),
	}
	a.output.Store(defaultOutput)
	return a, nil
}

// Run keeps the executor attached to its daemon and runs what it is given, until the daemon stops it, refuses it (ErrRefused) or is gone for
// longer than the lease (ErrAbandoned). It is called once.
//
// When ctx is done the executor leaves: it says so, takes nothing new, and goes on until its tasks have ended and their ends are acknowledged, for at
// most LeaveGrace; then it gives up what still runs. That is no error. When Run returns no task runs, and no goroutine of the agent.
func (a *Agent) Run(ctx context.Context) error {
	remove, err := a.openFolder()
	if err != nil {
		return err
	}
	defer remove()
	if err = a.tree.adopt(); err != nil {
		return fmt.Errorf("becoming the parent of orphaned processes: %w", err)
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	a.ledger = newLedger(a.cfg.Slots, func(att *attempt) { a.running.Go(func() { a.work(life, att) }) })
	var leaving sync.WaitGroup
	leaving.Go(func() { a.leave(ctx, life, end) })
	err = a.attend(life)
	end(err)
	leaving.Wait()
	a.ledger.close("the executor ends")
	a.ledger.stopAll(order{how: drop, grace: a.cfg.KillGrace})
	a.running.Wait()
	if errors.Is(err, errStopped) || errors.Is(err, errLeft) {
		a.log.LogAttrs(ctx, slog.LevelInfo, "executor ends", slog.String("why", err.Error()))
		return nil
	}
	return err
}

// openFolder makes the folder that tasks work in, and says how to clean up.
func (a *Agent) openFolder() (remove func(), err error) {
	if a.cfg.WorkDir == "" {
		a.folder, err = os.MkdirTemp("", fmt.Sprintf("retinue-executor-%d-", a.cfg.Executor))
		if err != nil {
			return nil, fmt.Errorf("making the work folder: %w", err)
		}
		return func() { _ = os.RemoveAll(a.folder) }, nil
	}
	if a.folder, err = filepath.Abs(a.cfg.WorkDir); err == nil {
		err = os.MkdirAll(a.folder, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making the work folder %s: %w", a.cfg.WorkDir, err)
	}
	return func() {}, nil
}

// work runs one attempt after the other in a slot until none waits. The end of life does not end them: that takes an order to each.
func (a *Agent) work(life context.Context, att *attempt) {
	for ; att != nil; att = a.ledger.next() {
		a.ledger.end(att, a.run(life, att))
	}
}

// leave waits until ctx says that the executor has to go, and sees to it that it goes in order and in time.
func (a *Agent) leave(ctx, life context.Context, end context.CancelCauseFunc) {
	select {
	case <-life.Done():
		return
	case <-ctx.Done():
	}
	a.log.LogAttrs(life, slog.LevelInfo, "executor leaves", slog.Duration("grace", a.cfg.LeaveGrace))
	a.ledger.leave("the executor was told to end")
	if !within(life, a.ledger.quiet(), a.cfg.LeaveGrace) {
		a.log.LogAttrs(life, slog.LevelWarn, "tasks are given up: they did not end in the grace that the executor has")
		a.ledger.stopAll(order{how: giveUp, grace: a.cfg.KillGrace})
		within(life, a.ledger.quiet(), a.cfg.KillGrace+flushTime)
	}
	close(a.bye)
	a.ledger.wake()
	within(life, nil, flushTime) // the session hangs up, which ends life
	end(errLeft)
}

// flushTime is how long the last words may take on their way.
const flushTime = 2 * time.Second

// within waits for done, and reports whether it came before d had passed or life ended.
func within(life context.Context, done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-life.Done():
	}
	return false
}
