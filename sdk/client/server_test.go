package client_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// server keeps tasks as a daemon does, and does to its callers what a bad day does. Every accepted task ends as `ends` says.
type server struct {
	apiv1.UnimplementedTaskServiceServer
	apiv1.UnimplementedApplicationServiceServer

	ends    func(*apiv1.TaskSpec) apiv1.TaskState               // succeeded if nil
	submits func(call int, req *apiv1.SubmitTasksRequest) error // an error refuses the call
	watches func(call int, w *watching) error                   // follows the book if nil

	mu       sync.Mutex
	calls    int // of SubmitTasks
	streams  int // of WatchTasks
	book     []*apiv1.Task
	byKey    map[string]bool
	runs     map[string]int // by key: how often it was accepted as new
	requests []int          // tasks in each accepted submission
	grown    chan struct{}  // closed when the book grows
	headers  metadata.MD    // of the last call
}

// SubmitTasks accepts tasks unless it shall not.
func (s *server) SubmitTasks(ctx context.Context, req *apiv1.SubmitTasksRequest) (*apiv1.SubmitTasksResponse, error) {
	s.mu.Lock()
	s.calls++
	call := s.calls
	s.headers, _ = metadata.FromIncomingContext(ctx)
	s.mu.Unlock()
	if s.submits != nil {
		if err := s.submits(call, req); err != nil {
			return nil, err
		}
	}
	s.accept(req.GetTasks()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, len(req.GetTasks()))
	return &apiv1.SubmitTasksResponse{}, nil
}

// accept puts the tasks whose keys are new into the book.
func (s *server) accept(tasks ...*apiv1.TaskSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		if s.byKey[t.GetKey()] {
			continue
		}
		state := apiv1.TaskState_TASK_STATE_SUCCEEDED
		if s.ends != nil {
			state = s.ends(t)
		}
		s.byKey[t.GetKey()] = true
		s.runs[t.GetKey()]++
		s.book = append(s.book, &apiv1.Task{Id: uint64(len(s.book) + 1), Key: t.GetKey(), Job: t.GetJob(), State: state})
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// forget loses all memory, as a daemon without a journal does when it is restarted. From then on all tasks succeed.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book, s.byKey, s.ends = nil, make(map[string]bool), nil
}

// WatchTasks streams the book.
func (s *server) WatchTasks(_ *apiv1.WatchTasksRequest, stream apiv1.TaskService_WatchTasksServer) error {
	s.mu.Lock()
	s.streams++
	w := &watching{server: s, stream: stream, call: s.streams}
	s.mu.Unlock()
	if s.watches != nil {
		return s.watches(w.call, w)
	}
	return w.follow()
}

// watching is one watch.
type watching struct {
	server *server
	stream apiv1.TaskService_WatchTasksServer
	call   int
	sent   int
}

// next sends what the book has more than was sent, waiting for it if there is nothing.
func (w *watching) next() error {
	for {
		w.server.mu.Lock()
		tasks, grown := w.server.book[w.sent:], w.server.grown
		w.server.mu.Unlock()
		if len(tasks) > 0 {
			w.sent += len(tasks)
			return w.stream.Send(&apiv1.WatchTasksResponse{Tasks: tasks})
		}
		select {
		case <-grown:
		case <-w.stream.Context().Done():
			return w.stream.Context().Err()
		}
	}
}

func (w *watching) listed() error { return w.stream.Send(&apiv1.WatchTasksResponse{Listed: true}) }

// follow lists, and then sends what comes.
func (w *watching) follow() error {
	w.server.mu.Lock()
	tasks := w.server.book
	w.server.mu.Unlock()
	w.sent = len(tasks)
	if err := w.stream.Send(&apiv1.WatchTasksResponse{Tasks: tasks}); err != nil {
		return err
	}
	if err := w.listed(); err != nil {
		return err
	}
	for {
		if err := w.next(); err != nil {
			return err
		}
	}
}

// serve puts the server on a socket and returns a client of it.
func serve(t *testing.T, s *server) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: "unix://" + listen(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func listen(t *testing.T, s *server) (socket string) {
	t.Helper()
	s.byKey, s.runs, s.grown = make(map[string]bool), make(map[string]int), make(chan struct{})
	dir, err := os.MkdirTemp("", "c") //nolint:usetesting // a socket's path has little room, and the name of a test would take it
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	apiv1.RegisterTaskServiceServer(g, s)
	apiv1.RegisterApplicationServiceServer(g, s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	return socket
}

// jobOf is a job of n tasks that counts the ends it is told of.
func jobOf(n int) (client.Job, map[string]int) {
	seen := make(map[string]int)
	job := client.Job{Application: "app", Name: "job", Changed: func(t *apiv1.Task) {
		if t.GetState() >= apiv1.TaskState_TASK_STATE_SUCCEEDED {
			seen[t.GetKey()]++
		}
	}}
	for i := range n {
		job.Tasks = append(job.Tasks, &apiv1.TaskSpec{Key: fmt.Sprintf("t%d", i), Command: []string{"true"}})
	}
	return job, seen
}

// once checks that each of n ends was seen once.
func once(t *testing.T, seen map[string]int, n int) {
	t.Helper()
	if len(seen) != n {
		t.Errorf("the ends of %d tasks were seen, want %d", len(seen), n)
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("the end of %s was seen %d times, want once", key, times)
		}
	}
}

func away() error { return status.Error(codes.Unavailable, "the daemon restarts") }

func cloned(tasks []*apiv1.TaskSpec) []*apiv1.TaskSpec {
	out := make([]*apiv1.TaskSpec, len(tasks))
	for i, t := range tasks {
		out[i] = proto.CloneOf(t)
	}
	return out
}
