package main

import (
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// master is a daemon for one executor: it launches tasks, waits until all are reported, and stops it.
type master struct {
	apiv1.UnimplementedExecutorServiceServer
	token    string
	register *apiv1.Register
	done     []uint64
}

func (m *master) Attach(stream apiv1.ExecutorService_AttachServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	m.token = md.Get("authorization")[0]
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	m.register = first.GetRegister()
	msg := &apiv1.AttachResponse{Admitted: &apiv1.Admitted{Session: 1}}
	for id := range uint64(3) {
		msg.Launches = append(msg.Launches, &apiv1.Launch{Task: &apiv1.TaskRef{Task: id + 1, Attempt: 1}, Spec: &apiv1.TaskSpec{Command: []string{"true"}}})
	}
	if err := stream.Send(msg); err != nil {
		return err
	}
	for len(m.done) < 3 {
		msg, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, r := range msg.GetReports() {
			if r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
				return status.Errorf(codes.Internal, "reported %v", r)
			}
			m.done = append(m.done, r.GetTask().GetTask())
		}
	}
	return stream.Send(&apiv1.AttachResponse{Stop: &apiv1.Stop{Reason: "that is all"}})
}

// A light executor says who it is, reports each launch as done, and ends when it is told to.
func TestLightExecutor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	m, server := &master{}, grpc.NewServer()
	apiv1.RegisterExecutorServiceServer(server, m)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	environment := map[string]string{
		"RETINUE_ADDRESS": "unix://" + socket, "RETINUE_APPLICATION": "app", "RETINUE_NAMESPACE": "default", "RETINUE_EXECUTOR_ID": "7",
		"RETINUE_SLOTS": "2", "RETINUE_TOKEN": "secret", "RETINUE_POD_NAME": "pod", "RETINUE_POD_UID": "uid",
	}
	if err := beLight(t.Context(), func(name string) string { return environment[name] }); err != nil {
		t.Error(err)
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if m.token != "Bearer secret" || m.register.GetExecutor() != 7 || m.register.GetSlots() != 2 || m.register.GetPodName() != "pod" {
		t.Errorf("it came as %q, %v", m.token, m.register)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3}, m.done); diff != "" {
		t.Errorf("tasks done (-want +got)\n%s", diff)
	}
}
