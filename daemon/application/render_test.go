package application_test

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// render writes down what the application asked for. Timers are left out, and questions unless they are asked for.
func (s *story) render(effects []application.Effect) string {
	var b strings.Builder
	for _, effect := range effects {
		if line := s.line(effect); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

var reasons = map[application.DeleteReason]string{
	application.DeleteReleased: "released", application.DeleteTimedOut: "timed out", application.DeleteEnded: "ended",
	application.DeleteStopped: "stopped", application.DeleteSurplus: "surplus",
}

func (s *story) line(effect application.Effect) string {
	switch e := effect.(type) {
	case application.CreatePod:
		return fmt.Sprintf("create %d profile=%d %s", e.Executor, e.Profile, e.Name)
	case application.DeletePod:
		return deletion(e)
	case application.AskPolicy:
		if !s.asks {
			return ""
		}
		return fmt.Sprintf("ask #%d %v builtin=%t", e.Number, e.Input.Hook, e.Builtin)
	case application.Notice:
		return fmt.Sprintf("notice %s %d: %s", e.Kind, e.Executor, e.Text)
	case application.Ended:
		return "the end"
	case application.Reply:
		if e.Refused.Code != 0 {
			return fmt.Sprintf("refused (%d): %s", e.Refused.Code, e.Refused.Text)
		}
		if e.Count > 0 {
			return fmt.Sprintf("reply count=%d", e.Count)
		}
		return ""
	case application.TasksChanged:
		return fmt.Sprintf("watch %d:%s", e.Watch, infos(e.Tasks))
	}
	return message(effect)
}

func deletion(e application.DeletePod) string {
	line := fmt.Sprintf("delete %d (%s)", e.Executor, reasons[e.Why])
	if e.UID == "" {
		line += " uid=?"
	}
	if e.Version > 0 {
		line += " if-unchanged"
	}
	if e.Grace == 0 {
		line += " grace=0"
	}
	return line + ": " + e.Text
}

// message renders what goes to executors.
func message(effect application.Effect) string {
	switch e := effect.(type) {
	case application.Admit:
		line := fmt.Sprintf("admit %d session=%d", e.Executor, e.Session)
		if len(e.Discard) > 0 {
			line += " discard" + attempts(e.Discard)
		}
		return line
	case application.Refuse:
		return fmt.Sprintf("refuse %d session=%d: %s", e.Executor, e.Session, e.Text)
	case application.LaunchTasks:
		line := fmt.Sprintf("launch on %d:", e.Executor)
		for _, l := range e.Launches {
			line += fmt.Sprintf(" %d/%d", l.Ref.Task, l.Ref.Attempt)
		}
		return line
	case application.KillTasks:
		return fmt.Sprintf("kill on %d:%s (%s)", e.Executor, attempts(e.Tasks), e.Text)
	case application.AckReports:
		return fmt.Sprintf("acknowledge to %d:%s", e.Executor, attempts(e.Tasks))
	case application.DrainExecutor:
		return fmt.Sprintf("tell %d to drain: %s", e.Executor, e.Text)
	case application.StopExecutor:
		return fmt.Sprintf("tell %d to stop: %s", e.Executor, e.Text)
	case application.EndSession:
		return fmt.Sprintf("end session %d of %d: %s", e.Session, e.Executor, e.Text)
	}
	return ""
}

func attempts(refs []task.Ref) string {
	var b strings.Builder
	for _, r := range refs {
		fmt.Fprintf(&b, " %d/%d", r.Task, r.Attempt)
	}
	return b.String()
}

func infos(tasks []task.Info) string {
	var b strings.Builder
	for _, i := range tasks {
		fmt.Fprintf(&b, " %d/%d=%v", i.ID, i.Attempt, i.State)
	}
	return b.String()
}

// status says how the application is.
func (s *story) status(*datadriven.TestData) error {
	st := s.app.Status(s.now)
	var b strings.Builder
	for _, p := range st.Profiles {
		c := p.Counts
		fmt.Fprintf(&b, "%s: target=%d requested=%d pending=%d running=%d terminating=%d registered=%d busy=%d draining=%d created=%d peak=%d\n", p.Name, p.Target,
			c.ByPhase[snapshot.Requested], c.ByPhase[snapshot.Pending], c.ByPhase[snapshot.Running], c.ByPhase[snapshot.Terminating],
			c.Registered, c.Busy, c.Draining, p.Created, p.Peak)
	}
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, "%s=%t %s: %s\n", c.Type, c.True, c.Reason, c.Text)
	}
	for _, d := range st.Policy.Decisions {
		fmt.Fprintf(&b, "decisions of %s %s: %d\n", d.Policy, d.By, d.Count)
	}
	if st.Policy.Swaps+uint32(st.Policy.Faults) > 0 {
		fmt.Fprintf(&b, "swaps=%d faults=%d\n", st.Policy.Swaps, st.Policy.Faults)
	}
	for _, v := range st.Policy.Violations {
		fmt.Fprintf(&b, "violations of %s: %d\n", v.Rule, v.Count)
	}
	s.said = b.String()
	return nil
}

// tasks says how the tasks are.
func (s *story) tasks(*datadriven.TestData) error {
	s.request++
	for _, effect := range s.app.Step(s.now, application.ListTasks{Request: s.request}) {
		if reply, ok := effect.(application.Reply); ok {
			for _, i := range reply.Tasks {
				s.said += fmt.Sprintf("%d %v attempt=%d executor=%d\n", i.ID, i.State, i.Attempt, i.Executor)
				if i.State == task.Expired {
					s.said += "  " + i.Result.Text + "\n"
				}
			}
		}
	}
	c := s.app.Status(s.now).Tasks
	s.said += fmt.Sprintf("accepted=%d succeeded=%d failed=%d cancelled=%d retried=%d\n", c.Accepted, c.Succeeded, c.Failed, c.Cancelled, c.Retried)
	if c.Expired > 0 {
		s.said += fmt.Sprintf("expired=%d\n", c.Expired)
	}
	return nil
}
