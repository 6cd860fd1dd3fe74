package driver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

const (
	defaultPage = 500
	maxPage     = 5000
	watchChunk  = 256     // tasks in one message of a watch
	watchBytes  = 1 << 20 // output in one message of a watch
)

type taskService struct {
	apiv1.UnimplementedTaskServiceServer
	*Server
}

// newID makes an id that nobody has: letters and digits that are easy to read and begin with a letter.
func newID() string { return "app-" + strings.ToLower(rand.Text()[:8]) }

// SubmitTasks accepts all tasks of the request or none.
func (s *taskService) SubmitTasks(ctx context.Context, req *apiv1.SubmitTasksRequest) (*apiv1.SubmitTasksResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	names := profileNames(m)
	specs := make([]*task.Spec, len(req.GetTasks()))
	for i, t := range req.GetTasks() {
		profile := 0
		if name := t.GetProfile(); name != "" {
			if profile = slices.Index(names, name); profile < 0 {
				return nil, refuse(codes.InvalidArgument, "PROFILE_UNKNOWN", "tasks[%d].profile: %q is not a profile of application %s: it has %v", i, name, m.Key(), names)
			}
		}
		specs[i] = specIn(t, snapshot.Profile(profile))
		if specs[i].Key == "" {
			specs[i].Key = "task-" + strings.ToLower(rand.Text())
		}
	}
	reply, err := m.Call(ctx, func(request uint64) application.Event { return application.Submit{Request: request, Tasks: specs} })
	if err != nil {
		return nil, failed(err)
	}
	if err := refused(reply.Refused); err != nil {
		return nil, err
	}
	return &apiv1.SubmitTasksResponse{Tasks: s.tasks(reply.Tasks, names, detail{})}, nil
}

func (s *Server) tasks(infos []task.Info, profiles []string, d detail) []*apiv1.Task {
	out := make([]*apiv1.Task, len(infos))
	for i, info := range infos {
		out[i] = times(s.parts.Applications.Wall).task(info, profiles, d)
	}
	return out
}

// WatchTasks sends the tasks of a job as they are, then each change.
func (s *taskService) WatchTasks(req *apiv1.WatchTasksRequest, stream apiv1.TaskService_WatchTasksServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return err
	}
	listed, watch, stop, err := m.WatchTasks(ctx, req.GetJob())
	if err != nil {
		return failed(err)
	}
	defer stop()
	// The sender ends when this method returns; a client that does not read cannot keep this method.
	over := make(chan error, 1)
	go func() { over <- s.follow(ctx, req, stream, m, listed, watch) }()
	select {
	case err := <-over:
		return err
	case <-watch.Failed():
		return failed(watch.Err())
	case <-s.stopping:
		return refuse(codes.Unavailable, "RESTARTING", "the daemon restarts")
	}
}

func (s *taskService) follow(ctx context.Context, req *apiv1.WatchTasksRequest, stream apiv1.TaskService_WatchTasksServer,
	m *runner.Member, listed []task.Info, watch *runner.Watch,
) error {
	if err := s.send(req, stream, m, listed); err != nil {
		return err
	}
	if err := stream.Send(&apiv1.WatchTasksResponse{Listed: true}); err != nil {
		return err
	}
	for {
		changed, err := watch.Next(ctx)
		if err != nil {
			return failed(err)
		}
		if err := s.send(req, stream, m, changed); err != nil {
			return err
		}
	}
}

// send puts tasks into messages that are not too large.
func (s *taskService) send(req *apiv1.WatchTasksRequest, stream apiv1.TaskService_WatchTasksServer, m *runner.Member, tasks []task.Info) error {
	d := detail{result: true, output: !req.GetWithoutOutput()}
	profiles := profileNames(m)
	msg := &apiv1.WatchTasksResponse{}
	bytes := 0
	for i, info := range tasks {
		if !req.GetOnlyEnded() || info.State.Terminal() {
			msg.Tasks = append(msg.Tasks, times(s.parts.Applications.Wall).task(info, profiles, d))
			bytes += len(info.Result.Output) + len(info.Result.Errors)
		}
		if last := i == len(tasks)-1; len(msg.GetTasks()) >= watchChunk || bytes >= watchBytes || (last && len(msg.GetTasks()) > 0) {
			if err := stream.Send(msg); err != nil {
				return err
			}
			msg, bytes = &apiv1.WatchTasksResponse{}, 0
		}
	}
	return nil
}

// ListTasks returns a page of tasks.
func (s *taskService) ListTasks(ctx context.Context, req *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	after, err := pageToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	states := make([]task.State, len(req.GetStates()))
	for i, state := range req.GetStates() {
		states[i] = task.State(state)
	}
	limit := req.GetPageSize()
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	reply, err := m.Call(ctx, func(request uint64) application.Event {
		return application.ListTasks{Request: request, Job: req.GetJob(), Keys: req.GetKeys(), States: states, After: after, Limit: limit}
	})
	if err != nil {
		return nil, failed(err)
	}
	if err := refused(reply.Refused); err != nil {
		return nil, err
	}
	return s.page(m, reply, req.GetWithOutput()), nil
}

// page makes a page that fits into a message: with output it may end before the limit.
func (s *taskService) page(m *runner.Member, reply application.Reply, output bool) *apiv1.ListTasksResponse {
	out := &apiv1.ListTasksResponse{}
	profiles := profileNames(m)
	d := detail{command: true, result: true, output: output}
	more := reply.More
	bytes := 0
	for _, info := range reply.Tasks {
		one := times(s.parts.Applications.Wall).task(info, profiles, d)
		bytes += 512 + specTextSize(info.Spec) + len(one.GetResult().GetOutput()) + len(one.GetResult().GetErrors())
		if bytes > apiv1.MaxMessage/2 && len(out.GetTasks()) > 0 {
			more = true
			break
		}
		out.Tasks = append(out.Tasks, one)
	}
	if n := len(out.GetTasks()); more && n > 0 {
		out.NextPageToken = base64.RawURLEncoding.EncodeToString(strconv.AppendUint(nil, out.GetTasks()[n-1].GetId(), 10))
	}
	return out
}

func pageToken(token string) (task.ID, error) {
	if token == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		if id, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return task.ID(id), nil
		}
	}
	return 0, refuse(codes.InvalidArgument, "PAGE_TOKEN_INVALID", "the page token is not one of ours: begin again without one")
}

// CancelTasks ends tasks.
func (s *taskService) CancelTasks(ctx context.Context, req *apiv1.CancelTasksRequest) (*apiv1.CancelTasksResponse, error) {
	m, err := s.find(ctx, req.GetNamespace(), req.GetApplication())
	if err != nil {
		return nil, err
	}
	if len(req.GetKeys()) == 0 && req.GetJob() == "" && !req.GetAll() {
		return nil, refuse(codes.InvalidArgument, "NOTHING_NAMED", "the request names neither tasks nor a job: set all to end every task of application %s", m.Key())
	}
	reply, err := m.Call(ctx, func(request uint64) application.Event {
		return application.Cancel{Request: request, Keys: req.GetKeys(), Job: req.GetJob()}
	})
	if err != nil {
		return nil, failed(err)
	}
	if err := refused(reply.Refused); err != nil {
		return nil, err
	}
	return &apiv1.CancelTasksResponse{Count: reply.Count}, nil
}
