package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// drainPatience is how long output is waited for that a process beyond our reach may still hold the pipe of.
const drainPatience = 2 * time.Second

// attemptVariable marks the processes of an attempt: it is in their environment, behind whatever the task says.
const attemptVariable = "RETINUE_ATTEMPT"

func (r ref) mark() string {
	return attemptVariable + "=" + strconv.FormatUint(r.task, 10) + "." + strconv.FormatUint(uint64(r.attempt), 10)
}

// invalid is what is wrong with a task wherever it runs.
type invalid struct{ text string }

func (e *invalid) Error() string { return e.text }

func invalidf(format string, args ...any) error { return &invalid{fmt.Sprintf(format, args...)} }

// run carries out an attempt, from an empty folder to none, and says how it ended.
func (a *Agent) run(life context.Context, att *attempt) *apiv1.Report {
	begin := time.Now()
	report := a.attempt(life, att)
	report.Took = durationpb.New(time.Since(begin))
	a.log.LogAttrs(life, slog.LevelDebug, "attempt ended", slog.Uint64("task", att.ref.task), slog.Uint64("attempt", uint64(att.ref.attempt)),
		slog.String("outcome", report.GetOutcome().String()), slog.Int("exit_code", int(report.GetExitCode())))
	return report
}

func (a *Agent) attempt(life context.Context, att *attempt) *apiv1.Report {
	place, err := a.prepare(att)
	defer a.clear(life, place)
	if err != nil {
		return att.spoilt(err)
	}
	cmd, err := a.command(att, place)
	if err != nil {
		return att.spoilt(err)
	}
	streams, err := openStreams(att.spec.GetInput(), int(a.output.Load()))
	if err != nil {
		return att.spoilt(fmt.Errorf("opening pipes on executor %d: %w", a.cfg.Executor, err))
	}
	cmd.Stdout, cmd.Stderr = streams.out, streams.err
	if streams.in != nil {
		cmd.Stdin = streams.in
	}
	if err := a.tree.start(cmd); err != nil {
		streams.close()
		return att.spoilt(a.startError(cmd, err))
	}
	streams.carry(att.spec.GetInput())
	a.ledger.began(att)
	end := a.watch(att, cmd)
	streams.finish(drainPatience)
	report := att.judge(end)
	report.Output, report.Truncated = streams.output.kept, streams.output.truncated
	report.Errors = streams.errors.bytes()
	return report
}

// spoilt reports an attempt whose program never ran.
func (att *attempt) spoilt(err error) *apiv1.Report {
	if bad := (*invalid)(nil); errors.As(err, &bad) {
		return att.report(apiv1.Outcome_OUTCOME_INVALID, err.Error())
	}
	return att.report(apiv1.Outcome_OUTCOME_FAILED, err.Error())
}

// command says what is to be started, and how.
func (a *Agent) command(att *attempt, place *place) (*exec.Cmd, error) {
	words := att.spec.GetCommand()
	if len(words) == 0 {
		return nil, invalidf("the task has no command")
	}
	cmd := exec.Command(words[0], words[1:]...)
	if cmd.Err != nil {
		return nil, a.startError(cmd, cmd.Err)
	}
	cmd.Dir = place.folder
	cmd.Env = append(cmd.Env, a.cfg.environ()...)
	cmd.Env = append(cmd.Env, "RETINUE_TASK="+strconv.FormatUint(att.ref.task, 10), "RETINUE_TASK_KEY="+att.spec.GetKey())
	for _, v := range att.spec.GetEnv() {
		cmd.Env = append(cmd.Env, v.GetName()+"="+v.GetValue())
	}
	cmd.Env = append(cmd.Env, att.ref.mark())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a session, and so a group, of its own: signals reach all of it and nothing else
	return cmd, nil
}

// startError tells tasks that can never be started from those that had bad luck.
func (a *Agent) startError(cmd *exec.Cmd, err error) error {
	name := cmd.Args[0]
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return invalidf("no such program %q in PATH of executor %d", name, a.cfg.Executor)
	case errors.Is(err, exec.ErrDot):
		return invalidf("the program %q is in the current folder of executor %d: write ./%s", name, a.cfg.Executor, name)
	case errors.Is(err, fs.ErrNotExist):
		return invalidf("no such program %q on executor %d", name, a.cfg.Executor)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENOTDIR):
		return invalidf("program %q cannot be run on executor %d: %v", name, a.cfg.Executor, errors.Unwrap(err))
	default:
		return fmt.Errorf("starting %q on executor %d: %w", name, a.cfg.Executor, err)
	}
}

// fate is how a program came to its end.
type fate struct {
	state   *os.ProcessState
	err     error
	why     *order        // it was told to end
	timeout time.Duration // it ran this long, which was too long
}

// watch waits until the program has ended, by itself or because it is told to, and until nothing is left of it.
func (a *Agent) watch(att *attempt, cmd *exec.Cmd) fate {
	type exit struct {
		state *os.ProcessState
		err   error
	}
	exited := make(chan exit, 1)
	a.running.Go(func() {
		state, err := a.tree.wait(cmd, att.ref)
		exited <- exit{state, err}
	})
	var end fate
	var force, timeout <-chan time.Time
	limit := att.spec.GetTimeout().AsDuration()
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	grace := a.cfg.KillGrace
	if own := att.spec.GetKillGrace(); own != nil && own.AsDuration() > 0 {
		grace = own.AsDuration()
	}
	for {
		select {
		case x := <-exited:
			end.state, end.err = x.state, x.err
			return end
		case <-timeout:
			end.timeout, timeout = limit, nil
			a.tree.ask(cmd)
			force = time.After(grace)
		case o := <-att.stop:
			if end.why == nil && end.timeout == 0 {
				end.why = &o
			}
			timeout = nil
			a.tree.ask(cmd)
			force = time.After(orElse(o.grace, grace))
		case <-force:
			a.tree.kill(cmd)
		}
	}
}

func orElse(d, other time.Duration) time.Duration {
	if d > 0 {
		return min(d, other)
	}
	return other
}

// judge says what an end means.
func (att *attempt) judge(end fate) *apiv1.Report {
	if end.state == nil {
		return att.report(apiv1.Outcome_OUTCOME_FAILED, "it cannot be told how the program ended: "+end.err.Error())
	}
	code, text := exitCode(end.state)
	var report *apiv1.Report
	switch {
	case end.timeout > 0:
		report = att.report(apiv1.Outcome_OUTCOME_TIMEOUT, fmt.Sprintf("it ran longer than its timeout of %v", end.timeout))
	case end.why != nil:
		report = att.report(end.why.outcome(), end.why.text())
	case code == 0:
		report = att.report(apiv1.Outcome_OUTCOME_SUCCEEDED, "")
	default:
		report = att.report(apiv1.Outcome_OUTCOME_FAILED, text)
	}
	report.ExitCode = code
	return report
}

// exitCode is a program's exit status as a shell gives it: 128 + n after signal n.
func exitCode(state *os.ProcessState) (code int32, text string) {
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int32(s.Signal()), fmt.Sprintf("signal %d (%v) ended it", int(s.Signal()), s.Signal())
	}
	return int32(state.ExitCode()), fmt.Sprintf("it ended with exit status %d", state.ExitCode())
}
