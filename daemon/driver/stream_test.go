package driver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// streams are all calls that send to clients. Each has something to send at once, and then waits for more.
func (a *alone) streams() map[string]func(ctx context.Context, reads bool) error {
	return map[string]func(context.Context, bool) error{
		"WatchApplications": func(ctx context.Context, reads bool) error {
			p := newRemotePeer[struct{}, apiv1.WatchApplicationsResponse](ctx)
			p.reads(reads)
			return a.apps.WatchApplications(&apiv1.WatchApplicationsRequest{}, p) //nolint:contextcheck // the stream has it
		},
		"WatchTasks": func(ctx context.Context, reads bool) error {
			p := newRemotePeer[struct{}, apiv1.WatchTasksResponse](ctx)
			p.reads(reads)
			return (&taskService{Server: a.Server}).WatchTasks(&apiv1.WatchTasksRequest{Application: "app"}, p) //nolint:contextcheck // the stream has it
		},
		"ReadExecutorLog": func(ctx context.Context, reads bool) error {
			p := newRemotePeer[struct{}, apiv1.ReadExecutorLogResponse](ctx)
			p.reads(reads)
			return a.apps.ReadExecutorLog(&apiv1.ReadExecutorLogRequest{Application: "app", Executor: 1, Follow: true}, p) //nolint:contextcheck // the stream has it
		},
	}
}

// reads takes what is sent, until the stream ends.
func (p *remotePeer[In, Out]) reads(all bool) {
	if all {
		go func() {
			for {
				select {
				case <-p.took:
				case <-p.ctx.Done():
					return
				}
			}
		}()
	}
}

// endless is a log that has a line and no end.
type endless struct {
	io.Reader
	closed chan struct{}
}

func newEndless() *endless {
	e := &endless{closed: make(chan struct{})}
	e.Reader = io.MultiReader(strings.NewReader("line\n"), e.silence())
	return e
}

func (e *endless) silence() io.Reader {
	return readerFunc(func([]byte) (int, error) { <-e.closed; return 0, io.ErrClosedPipe })
}

func (e *endless) Close() error { close(e.closed); return nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// each runs a subtest for each call that streams, in a bubble of its own, with an executor whose log is endless.
func each(t *testing.T, test func(t *testing.T, a *alone, log *endless, call func(context.Context, bool) error)) {
	for _, name := range []string{"WatchApplications", "WatchTasks", "ReadExecutorLog"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAlone(t)
				a.pods(1)
				if _, err := a.app.Fresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				log := newEndless()
				a.parts.Logs = func(context.Context, string, string, int64, bool) (io.ReadCloser, error) { return log, nil }
				test(t, a, log, a.streams()[name])
				if name == "ReadExecutorLog" {
					synctest.Wait()
					select {
					case <-log.closed:
					default:
						t.Error("the log is left open")
					}
				}
			})
		})
	}
}

// A client that takes nothing is cut off.
func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	each(t, func(t *testing.T, a *alone, _ *endless, call func(context.Context, bool) error) {
		ctx, cancel := context.WithCancel(everything(t))
		defer cancel() // ends the send, as grpc does
		began := time.Now()
		if err := call(ctx, false); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 2*a.cfg.StallTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// A client that reads is served for as long as it likes, also if there is nothing to send, until the daemon stops: that waits for nobody.
func TestStreamsEndWhenTheDaemonStops(t *testing.T) {
	each(t, func(t *testing.T, a *alone, _ *endless, call func(context.Context, bool) error) {
		ctx, cancel := context.WithCancel(everything(t))
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- call(ctx, true) }()
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v", err)
		case <-time.After(10 * a.cfg.StallTimeout):
		}
		close(a.stopping)
		synctest.Wait()
		select {
		case err := <-ended:
			if status.Code(err) != codes.Unavailable {
				t.Errorf("got %v", err)
			}
		default:
			t.Error("it goes on")
		}
	})
}

// A watch shows a specification when it is new or changed, and never pod templates; which application a status belongs to is always said.
func TestWatchSendsSpecificationsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		template := `{"spec":{"priorityClassName":"low"}}`
		describe := func(target uint32) func(*apiv1.ApplicationSpec) {
			return func(s *apiv1.ApplicationSpec) {
				s.Profiles[0].PodTemplate, s.Profiles[0].Image, s.Profiles[0].Target = template, "image", target
			}
		}
		if err := a.apply(t, "app", describe(1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(everything(t))
		defer cancel()
		p := newRemotePeer[struct{}, apiv1.WatchApplicationsResponse](ctx)
		go func() { _ = a.apps.WatchApplications(&apiv1.WatchApplicationsRequest{}, p) }()
		next := func() *apiv1.ApplicationSpec {
			apps := (<-p.took).GetApplications()
			if len(apps) != 1 || apps[0].GetSpec().GetId() != "app" || apps[0].GetSpec().GetNamespace() != "default" {
				t.Fatalf("got %v", apps)
			}
			return apps[0].GetSpec()
		}
		if s := next(); len(s.GetProfiles()) != 1 || s.GetProfiles()[0].GetPodTemplate() != "" {
			t.Errorf("at first there is %v", s)
		}
		if _, err := a.app.Call(t.Context(), setTarget(4)); err != nil {
			t.Fatal(err)
		}
		if s := next(); len(s.GetProfiles()) != 0 {
			t.Errorf("after a change of the status there is %v", s)
		}
		if err := a.apply(t, "app", describe(2)); err != nil {
			t.Fatal(err)
		}
		if s := next(); len(s.GetProfiles()) != 1 || s.GetProfiles()[0].GetTarget() != 2 {
			t.Errorf("after a change of the specification there is %v", s)
		}
		got, err := a.apps.GetApplication(everything(t), &apiv1.GetApplicationRequest{Application: "app"})
		if err != nil || got.GetApplication().GetSpec().GetProfiles()[0].GetPodTemplate() != template {
			t.Errorf("alone it is %v, %v", got, err)
		}
	})
}

// Lists come in pages that fit into messages, however much there is; together they hold everything once and in order.
func TestListsComeInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		const many = 1234
		a.pods(many)
		note := strings.Repeat("x", 190<<10)
		want := "app "
		for i := range 15 {
			id := fmt.Sprintf("app-%02d", i)
			want += id + " "
			if err := a.apply(t, id, func(s *apiv1.ApplicationSpec) { s.Annotations = map[string]string{"note": note} }); err != nil {
				t.Fatal(err)
			}
		}
		var seen uint64
		for _, size := range []uint32{0, 7, 100_000} {
			seen = 0
			req := &apiv1.ListExecutorsRequest{Application: "app", PageSize: size}
			for more := true; more; more = req.GetPageToken() != "" {
				out, err := a.apps.ListExecutors(everything(t), req)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(out.GetExecutors()); n == 0 || n > pageSize(size) {
					t.Fatalf("a page of %d executors where %d were asked for", n, size)
				}
				for _, e := range out.GetExecutors() {
					if seen++; e.GetId() != seen {
						t.Fatalf("executor %d comes as number %d", e.GetId(), seen)
					}
				}
				req.PageToken = out.GetNextPageToken()
			}
			if seen != many {
				t.Errorf("in pages of %d there are %d executors, want %d", size, seen, many)
			}
		}
		var ids bytes.Buffer
		req := &apiv1.ListApplicationsRequest{}
		pages := 0
		for more := true; more; more = req.GetPageToken() != "" {
			out, err := a.apps.ListApplications(everything(t), req)
			if err != nil {
				t.Fatal(err)
			}
			if size := proto.Size(out); size > apiv1.MaxMessage/2+64 {
				t.Errorf("a page has %d bytes", size)
			}
			for _, app := range out.GetApplications() {
				fmt.Fprintf(&ids, "%s ", app.GetSpec().GetId())
			}
			req.PageToken = out.GetNextPageToken()
			pages++
		}
		if ids.String() != want || pages < 2 {
			t.Errorf("in %d pages there are %s", pages, ids.String())
		}
	})
}
