package driver

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
)

// A connection without a call is closed after a while, though the peer is there and answers pings; one with a call stays.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlone(t)
		ctx, stop := context.WithCancel(t.Context())
		listener := bufconn.Listen(1 << 20)
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx, []Listener{{Listener: listener}}, time.Second) }()
		connect := func() (*grpc.ClientConn, healthpb.HealthClient) {
			conn, err := grpc.NewClient("passthrough:alone", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
			if err != nil {
				t.Fatal(err)
			}
			client := healthpb.NewHealthClient(conn)
			if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
				t.Fatal(err)
			}
			return conn, client
		}
		idle, _ := connect()
		busy, client := connect()
		watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = watch.Recv(); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * maxIdle)
		synctest.Wait()
		if state := idle.GetState(); state != connectivity.Idle {
			t.Errorf("the connection without a call is %v", state)
		}
		if state := busy.GetState(); state != connectivity.Ready {
			t.Errorf("the connection with a call is %v", state)
		}
		_, _ = idle.Close(), busy.Close()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended with %v", err)
		}
	})
}
