package driver

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// clipAt bounds texts that peers choose and people read.
const clipAt = 1024

// clip bounds a text and makes it valid UTF-8.
func clip(s string) string {
	if len(s) > clipAt {
		s = s[:clipAt]
	}
	return strings.ToValidUTF8(s, "�")
}

func refOut(r task.Ref) *apiv1.TaskRef {
	return &apiv1.TaskRef{Task: uint64(r.Task), Attempt: r.Attempt}
}

func refsOut(refs []task.Ref) []*apiv1.TaskRef {
	out := make([]*apiv1.TaskRef, len(refs))
	for i, r := range refs {
		out[i] = refOut(r)
	}
	return out
}

func refIn(r *apiv1.TaskRef) task.Ref {
	return task.Ref{Task: task.ID(r.GetTask()), Attempt: r.GetAttempt()}
}

func refsIn(refs []*apiv1.TaskRef) []task.Ref {
	out := make([]task.Ref, len(refs))
	for i, r := range refs {
		out[i] = refIn(r)
	}
	return out
}

// reportsIn reads what an executor says of attempts. An executor is not trusted: what is over a bound is cut.
func reportsIn(reports []*apiv1.Report, outputLimit uint64) []task.Report {
	out := make([]task.Report, 0, len(reports))
	for _, r := range reports {
		outcome := r.GetOutcome()
		if outcome <= apiv1.Outcome_OUTCOME_UNSPECIFIED || outcome > apiv1.Outcome_OUTCOME_RETURNED {
			continue
		}
		output, truncated := r.GetOutput(), r.GetTruncated()
		if uint64(len(output)) > outputLimit {
			output, truncated = output[:outputLimit], true
		}
		errors := r.GetErrors()
		if len(errors) > maxErrors {
			errors = errors[len(errors)-maxErrors:]
		}
		out = append(out, task.Report{
			Ref: refIn(r.GetTask()), Outcome: task.Outcome(outcome), ExitCode: r.GetExitCode(), Text: clip(r.GetText()),
			Output: output, Errors: errors, Truncated: truncated, Took: max(r.GetTook().AsDuration(), 0),
		})
	}
	return out
}

// maxErrors bounds the tail of standard error that is kept.
const maxErrors = 16 << 10

func launchOut(l task.Launch) *apiv1.Launch {
	return &apiv1.Launch{Task: refOut(l.Ref), Spec: specOut(l.Spec)}
}

func specOut(s *task.Spec) *apiv1.TaskSpec {
	out := &apiv1.TaskSpec{
		Key: s.Key, Job: s.Job, Command: s.Command, Input: s.Input, Directory: s.Directory,
		Timeout: durationOut(s.Timeout), KillGrace: durationOut(s.KillGrace),
	}
	for _, e := range s.Env {
		out.Env = append(out.Env, &apiv1.EnvVar{Name: e.Name, Value: e.Value})
	}
	for _, f := range s.Files {
		out.Files = append(out.Files, &apiv1.FileRef{Name: f.Name, Path: f.Path})
	}
	return out
}

func specIn(s *apiv1.TaskSpec, profile snapshot.Profile) *task.Spec {
	out := &task.Spec{
		Key: s.GetKey(), Job: s.GetJob(), Profile: profile, Command: s.GetCommand(), Input: s.GetInput(), Directory: s.GetDirectory(),
		MaxAttempts: s.GetMaxAttempts(), Timeout: s.GetTimeout().AsDuration(), KillGrace: s.GetKillGrace().AsDuration(), Deadline: s.GetDeadline().AsDuration(),
	}
	for _, e := range s.GetEnv() {
		out.Env = append(out.Env, task.Env{Name: e.GetName(), Value: e.GetValue()})
	}
	for _, f := range s.GetFiles() {
		out.Files = append(out.Files, task.File{Name: f.GetName(), Path: f.GetPath()})
	}
	return out
}

func durationOut(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// times turns moments of the daemon's clock into times for people.
type times func(snapshot.Instant) time.Time

func (wall times) out(i snapshot.Instant) *timestamppb.Timestamp {
	if i == 0 {
		return nil
	}
	return timestamppb.New(wall(i))
}

// detail is how much of a task a client gets.
type detail struct {
	command bool
	result  bool
	output  bool
}

func (wall times) task(info task.Info, profiles []string, d detail) *apiv1.Task {
	out := &apiv1.Task{
		Id: uint64(info.ID), Key: info.Spec.Key, Job: info.Spec.Job, State: apiv1.TaskState(info.State), Attempt: info.Attempt,
		Executor:   uint64(info.Executor),
		AcceptedAt: wall.out(info.Accepted), StartedAt: wall.out(info.Started), EndedAt: wall.out(info.Ended), DeadlineAt: wall.out(info.Deadline()),
	}
	if int(info.Spec.Profile) < len(profiles) {
		out.Profile = profiles[info.Spec.Profile]
	}
	if d.command {
		out.Command = info.Spec.Command
	}
	if d.result && (info.Result.Outcome != 0 || info.Result.Text != "") { // one that expired may have a text and no attempt that ended
		out.Result = reportOut(info.Result, d.output)
	}
	return out
}

func reportOut(r task.Report, output bool) *apiv1.Report {
	out := &apiv1.Report{
		Task: refOut(r.Ref), Outcome: apiv1.Outcome(r.Outcome), ExitCode: r.ExitCode, Text: r.Text,
		Errors: r.Errors, Truncated: r.Truncated, Took: durationpb.New(r.Took),
	}
	if output {
		out.Output = r.Output
	}
	return out
}
