package driver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// fresh returns an application as it is now: what a call has done is in it.
func (s *Server) fresh(ctx context.Context, m *runner.Member) (*apiv1.Application, error) {
	status, err := m.Fresh(ctx)
	if err != nil {
		return nil, failed(err)
	}
	return s.application(m, status, m.Definition().Source), nil
}

// outline is a specification without pod templates: they make up most of a large one, and lists shall be small.
func outline(src *apiv1.ApplicationSpec) *apiv1.ApplicationSpec {
	src = proto.CloneOf(src)
	for _, p := range src.GetProfiles() {
		p.PodTemplate = ""
	}
	return src
}

// application returns an application as clients see it, with as much of its specification as they are to see.
func (s *Server) application(m *runner.Member, status *application.Status, src *apiv1.ApplicationSpec) *apiv1.Application {
	wall := times(s.parts.Applications.Wall)
	out := &apiv1.ApplicationStatus{
		CreatedAt: timestamppb.New(m.CreatedAt), Stopped: status.Stopped, Mode: spec.ModeName(status.Mode),
		Tasks: &apiv1.TaskCounts{
			Accepted: status.Tasks.Accepted, Queued: status.Tasks.Queued, Launched: status.Tasks.Launched, Running: status.Tasks.Running,
			Succeeded: status.Tasks.Succeeded, Failed: status.Tasks.Failed, Cancelled: status.Tasks.Cancelled, Expired: status.Tasks.Expired,
			Retried: status.Tasks.Retried,
		},
		Policy: policyStatus(status.Policy),
	}
	for _, p := range status.Profiles {
		out.Profiles = append(out.Profiles, profileStatus(p))
	}
	for _, c := range status.Conditions {
		out.Conditions = append(out.Conditions, &apiv1.Condition{
			Type: string(c.Type), Status: c.True, Reason: c.Reason, Message: c.Text, Since: wall.out(c.Since),
		})
	}
	for _, n := range status.Notices {
		out.Notices = append(out.Notices, &apiv1.Notice{
			At: wall.out(n.At), Kind: string(n.Kind), Executor: uint64(n.Executor), Text: n.Text, Count: n.Count,
		})
	}
	return &apiv1.Application{Spec: src, Status: out}
}

func profileStatus(p application.ProfileStatus) *apiv1.ProfileStatus {
	return &apiv1.ProfileStatus{
		Name: p.Name, Target: p.Target, Min: p.Min, Max: p.Max,
		Requested: p.Counts.ByPhase[snapshot.Requested], Pending: p.Counts.ByPhase[snapshot.Pending],
		Running: p.Counts.ByPhase[snapshot.Running], Terminating: p.Counts.ByPhase[snapshot.Terminating],
		Registered: p.Counts.Registered, Busy: p.Counts.Busy, BusySlots: p.Counts.BusySlots, Slots: p.Counts.Slots,
		Peak: p.Peak, Created: p.Created, QueuedTasks: p.Queued, RunningTasks: p.Running,
	}
}

func policyStatus(p application.PolicyStatus) *apiv1.PolicyStatus {
	out := &apiv1.PolicyStatus{Policy: p.Policy, Digest: p.By, Swaps: p.Swaps, Faults: p.Faults, LastFault: p.LastFault}
	for _, d := range p.Decisions {
		out.Decisions = append(out.Decisions, &apiv1.DecisionCount{Policy: d.Policy, Digest: d.By, Count: d.Count})
	}
	for _, v := range p.Violations {
		out.Violations = append(out.Violations, &apiv1.ViolationCount{Rule: v.Rule, Count: v.Count})
	}
	return out
}

func (s *Server) executor(e *snapshot.Executor, profiles []string) *apiv1.Executor {
	wall := times(s.parts.Applications.Wall)
	out := &apiv1.Executor{
		Id: uint64(e.ID), Phase: e.Phase.String(), PodName: e.Name, PodUid: e.UID, Node: e.Node,
		Registered: e.Load.Registered, Draining: e.Load.Draining, Slots: e.Load.Slots, Busy: e.Load.Busy,
		Done: e.Load.Done, Failed: e.Load.Failed, AskedAt: wall.out(e.Asked), Since: wall.out(e.Since), Text: executorText(e),
	}
	if int(e.Profile) < len(profiles) {
		out.Profile = profiles[e.Profile]
	}
	return out
}

func executorText(e *snapshot.Executor) string {
	switch {
	case e.Phase == snapshot.Pending && e.WaitText != "":
		return e.WaitText
	case e.Exit.Known && e.Exit.Reason != "":
		return fmt.Sprintf("exit code %d (%s)", e.Exit.Code, e.Exit.Reason)
	case e.Exit.Known:
		return fmt.Sprintf("exit code %d", e.Exit.Code)
	case e.Phase.Terminal():
		return e.Exit.Reason
	default:
		return ""
	}
}

func profileNames(m *runner.Member) []string {
	profiles := m.Definition().Config.Profiles
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}
