package client_test

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"google.golang.org/grpc"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// pages lists seven executors, three at a time.
type pages struct {
	apiv1.UnimplementedApplicationServiceServer
}

// ListExecutors returns a page whose token is the last number on it.
func (pages) ListExecutors(_ context.Context, req *apiv1.ListExecutorsRequest) (*apiv1.ListExecutorsResponse, error) {
	after, _ := strconv.ParseUint(req.GetPageToken(), 10, 64) // empty: 0
	out := &apiv1.ListExecutorsResponse{}
	for id := after + 1; id <= 7; id++ {
		if len(out.GetExecutors()) == 3 {
			out.NextPageToken = strconv.FormatUint(id-1, 10)
			break
		}
		out.Executors = append(out.Executors, &apiv1.Executor{Id: id, PodName: req.GetNamespace() + "/" + req.GetApplication()})
	}
	return out, nil
}

// All executors are listed, however few the daemon puts into one answer.
func TestExecutorsFollowsPages(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	apiv1.RegisterApplicationServiceServer(server, pages{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if servedErr := <-served; servedErr != nil {
			t.Error(servedErr)
		}
	}()
	c, err := client.New(client.Config{Address: "unix://" + socket})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	list, err := c.Executors(t.Context(), "app", "ns")
	if err != nil || len(list) != 7 {
		t.Fatalf("got %v, %v, want 7 executors", list, err)
	}
	for i, e := range list {
		if e.GetId() != uint64(i+1) || e.GetPodName() != "ns/app" {
			t.Errorf("executor %d is %v", i, e)
		}
	}
}
