package driver

import (
	"context"
	"crypto/rand"
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

// watchChunk is the most tasks in one message of a watch.
const watchChunk = 256

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
		if d := t.GetDeadline(); d != nil && d.AsDuration() <= 0 {
			return nil, refuse(codes.InvalidArgument, "BAD_REQUEST", "tasks[%d].deadline: %v is over before the task begins: leave it out if it may take for ever", i, d.AsDuration())
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
	m, err := s.find(stream.Context(), req.GetNamespace(), req.GetApplication())
	if err != nil {
		return err
	}
	listed, watch, stop, err := m.WatchTasks(stream.Context(), req.GetJob())
	if err != nil {
		return failed(err)
	}
	defer stop()
	return tell(s.Server, stream, func(ctx context.Context, send func(*apiv1.WatchTasksResponse) error) error {
		if err := s.show(req, m, listed, send); err != nil {
			return err
		}
		if err := send(&apiv1.WatchTasksResponse{Listed: true}); err != nil {
			return err
		}
		for {
			changed, err := watch.Next(ctx)
			if err != nil {
				return failed(err)
			}
			if err := s.show(req, m, changed, send); err != nil {
				return err
			}
		}
	})
}

// show sends tasks in messages that are not too large.
func (s *taskService) show(req *apiv1.WatchTasksRequest, m *runner.Member, tasks []task.Info, send func(*apiv1.WatchTasksResponse) error) error {
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
			if err := send(msg); err != nil {
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
	after, err := pageNumber(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	states := make([]task.State, len(req.GetStates()))
	for i, state := range req.GetStates() {
		states[i] = task.State(state)
	}
	limit := uint32(pageSize(req.GetPageSize()))
	reply, err := m.Call(ctx, func(request uint64) application.Event {
		return application.ListTasks{Request: request, Job: req.GetJob(), Keys: req.GetKeys(), States: states, After: task.ID(after), Limit: limit}
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
	p := page{left: maxPage}
	for _, info := range reply.Tasks {
		one := times(s.parts.Applications.Wall).task(info, profiles, d)
		if !p.add(around(one)) {
			more = true
			break
		}
		out.Tasks = append(out.Tasks, one)
	}
	if n := len(out.GetTasks()); more && n > 0 {
		out.NextPageToken = pageAfter(strconv.FormatUint(out.GetTasks()[n-1].GetId(), 10))
	}
	return out
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
