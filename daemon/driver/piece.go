package driver

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/task"
)

const (
	header  = 16 // most bytes of a field's tag and length
	refSize = 24 // most bytes of a TaskRef with its header
	ackMost = 1000
)

// around is the most bytes that a message takes as a field of another.
func around(m proto.Message) int { return header + proto.Size(m) }

func (s *Server) admitted(e application.Admit) piece {
	admitted := &apiv1.Admitted{
		Session: e.Session, Discard: refsOut(e.Discard), HeartbeatInterval: durationpb.New(s.cfg.HeartbeatInterval),
		Lease: durationpb.New(s.cfg.Lease), OutputLimitBytes: s.cfg.OutputLimit,
	}
	return piece{around(admitted), func(m *apiv1.AttachResponse) { m.Admitted = admitted }}
}

func launches(list []task.Launch) []piece {
	pieces := make([]piece, len(list))
	for i, l := range list {
		launch := launchOut(l)
		pieces[i] = piece{around(launch), func(m *apiv1.AttachResponse) { m.Launches = append(m.Launches, launch) }}
	}
	return pieces
}

func kills(e application.KillTasks) []piece {
	pieces := make([]piece, len(e.Tasks))
	for i, ref := range e.Tasks {
		kill := &apiv1.Kill{Task: refOut(ref), Reason: e.Text}
		pieces[i] = piece{around(kill), func(m *apiv1.AttachResponse) { m.Kills = append(m.Kills, kill) }}
	}
	return pieces
}

// acknowledgements makes several pieces of many: an executor says how many there are.
func acknowledgements(refs []task.Ref) []piece {
	var pieces []piece
	for some := range slices.Chunk(refs, ackMost) {
		pieces = append(pieces, piece{refSize * len(some), func(m *apiv1.AttachResponse) {
			m.Acknowledged = append(m.Acknowledged, refsOut(some)...)
		}})
	}
	return pieces
}
