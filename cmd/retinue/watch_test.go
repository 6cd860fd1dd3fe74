package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// look hears something or does not, and ends with an error.
type look struct {
	hears bool
	ends  error
}

// watching is a watch whose looks are these, in their order, the last one again and again.
func watching(looks ...look) (complaints string, took time.Duration, err error) {
	var out bytes.Buffer
	p := &program{streams: streams{err: &out}}
	began := time.Now()
	err = p.watched(context.Background(), func(_ context.Context, heard func()) error {
		is := looks[0]
		if len(looks) > 1 {
			looks = looks[1:]
		}
		if is.hears {
			heard()
		}
		return is.ends
	})
	return out.String(), time.Since(began), err
}

// A watch goes on over everything that passes, and says so once for each cut; what does not pass ends it.
func TestWatchGoesOn(t *testing.T) {
	broken, slow := status.Error(codes.Unavailable, "error reading from server: EOF"), status.Error(codes.ResourceExhausted, "the client took no message for 30s: call again")
	gone := status.Error(codes.NotFound, "there is no application x")
	synctest.Test(t, func(t *testing.T) {
		complaints, took, err := watching(look{true, broken}, look{false, broken}, look{true, slow}, look{true, nil}, look{false, gone})
		if !errors.Is(err, gone) {
			t.Errorf("ended with %v, want that it is gone", err)
		}
		want := "retinue: the watch was cut (the connection broke): connecting again\nretinue: the watch goes on\n" +
			"retinue: the watch was cut (the client took no message for 30s): connecting again\nretinue: the watch goes on\n" +
			"retinue: the watch was cut (the daemon ended it): connecting again\n"
		if complaints != want {
			t.Errorf("said\n%swant\n%s", complaints, want)
		}
		if took != 500*time.Millisecond { // 100 and 200, and 100 for each of the others
			t.Errorf("paused for %v in all, want 500ms", took)
		}
	})
}

// A watch that cannot begin, is refused or is interrupted ends at once.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, is := range []look{
			{false, status.Error(codes.Unavailable, "no")},
			{true, status.Error(codes.PermissionDenied, "no")},
			{true, status.Error(codes.InvalidArgument, "no")},
			{true, notFoundf("deleted")},
			{true, errors.New("the pipe is closed")},
		} {
			if complaints, took, err := watching(is, look{true, errors.New("looked again")}); !errors.Is(err, is.ends) || complaints != "" || took != 0 {
				t.Errorf("%v: ended with %v after %v, and said %q; want that very error at once", is, err, took, complaints)
			}
		}
	})
}

// A daemon that stays away is not waited for forever, and not asked in a hurry.
func TestWatchGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		away := status.Error(codes.Unavailable, "away")
		p := &program{streams: streams{err: &bytes.Buffer{}}}
		began := time.Now()
		err := p.watched(t.Context(), func(_ context.Context, heard func()) error {
			if asked++; asked == 1 {
				heard()
				time.Sleep(2 * watchPatience) // in which nothing happens
				began = time.Now()
			}
			return away
		})
		took := time.Since(began)
		if !errors.Is(err, away) || took < watchPatience || took > watchPatience+longestPause || asked > 70 {
			t.Errorf("gave up with %v after %v and %d looks, want %v and at most 70", err, took, asked, watchPatience)
		}
	})
}

// apps is a daemon that has the applications of these names, and nothing more.
type apps struct {
	apiv1.UnimplementedApplicationServiceServer
	names []string
}

func (a *apps) list() (out []*apiv1.Application) {
	for _, name := range a.names {
		out = append(out, &apiv1.Application{Spec: &apiv1.ApplicationSpec{Namespace: "default", Id: name}})
	}
	return out
}

func (a *apps) ListApplications(context.Context, *apiv1.ListApplicationsRequest) (*apiv1.ListApplicationsResponse, error) {
	return &apiv1.ListApplicationsResponse{Applications: a.list()}, nil
}

func (a *apps) WatchApplications(_ *apiv1.WatchApplicationsRequest, stream apiv1.ApplicationService_WatchApplicationsServer) error {
	if err := stream.Send(&apiv1.WatchApplicationsResponse{Applications: a.list()}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// serving lets a daemon answer at a socket until the function that it returns is called.
func serving(t *testing.T, socket string, daemon apiv1.ApplicationServiceServer) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	apiv1.RegisterApplicationServiceServer(server, daemon)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	return func() { server.Stop(); running.Wait() }
}

// lines hands over the lines that are written to it.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l <- strings.Join(strings.Fields(line), " ")
	}
	return len(b), nil
}

// A watch outlives a restart of the daemon, repeats nothing, and tells what went meanwhile.
func TestWatchOverARestart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	out, complaints := make(lines, 16), make(lines, 16)
	stop := serving(t, socket, &apps{names: []string{"stays", "goes"}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"--daemon", "unix://" + socket, "get", "apps", "-w"}, streams{out: out, err: complaints})
	}()
	expect := func(from lines, want string) {
		t.Helper()
		if got := <-from; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect(out, "NAMESPACE NAME STATUS READY BUSY QUEUED RUNNING DONE FAILED POLICY AGE")
	expect(out, "default stays Progressing 0/0 0 0 0 0 0 - -")
	expect(out, "default goes Progressing 0/0 0 0 0 0 0 - -")
	stop()
	expect(complaints, "retinue: the watch was cut (the connection broke): connecting again")
	stop = serving(t, socket, &apps{names: []string{"stays", "comes"}})
	defer stop()
	expect(complaints, "retinue: the watch goes on")
	expect(out, "app/default/goes is gone")
	expect(out, "default comes Progressing 0/0 0 0 0 0 0 - -")
	cancel()
	if code := <-ended; code != exitInterrupted {
		t.Errorf("ended with %d, want %d", code, exitInterrupted)
	}
	expect(complaints, "retinue: interrupted")
}
