package driver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

func ack(n int) piece {
	return func(m *apiv1.AttachResponse) int {
		m.Acknowledged = append(m.Acknowledged, &apiv1.TaskRef{Task: uint64(n)})
		return 16
	}
}

// All that gathers while a message is on its way goes into the next one, in order, and messages stay within their size.
func TestOutboxBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(1000, 64)
		release := make(chan struct{})
		var sizes []int
		var order []uint64
		send := func(m *apiv1.AttachResponse) error {
			sizes = append(sizes, len(m.GetAcknowledged()))
			for _, ref := range m.GetAcknowledged() {
				order = append(order, ref.GetTask())
			}
			<-release
			return nil
		}
		ended := errors.New("over")
		done := make(chan error)
		go func() { done <- o.drain(t.Context(), send, &atomic.Int64{}) }()
		o.add(ack(0))
		synctest.Wait() // the first is on its way
		for n := 1; n < 9; n++ {
			o.add(ack(n))
		}
		o.finish(ended)
		close(release)
		if err := <-done; !errors.Is(err, ended) {
			t.Errorf("ended with %v", err)
		}
		for i, n := range order {
			if n != uint64(i) {
				t.Fatalf("order %v", order)
			}
		}
		if len(order) != 9 || len(sizes) != 4 || sizes[0] != 1 || sizes[1] != 3 {
			t.Errorf("messages of %v, in all %d", sizes, len(order))
		}
	})
}

// A peer for whom too much waits is cut off; whoever fills the outbox never waits.
func TestOutboxCutsOffASlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(10, 1<<20)
		ctx, cancel := context.WithCancel(t.Context())
		stuck := func(*apiv1.AttachResponse) error { <-ctx.Done(); return ctx.Err() }
		go func() { _ = o.drain(ctx, stuck, &atomic.Int64{}) }()
		o.add(ack(0))
		synctest.Wait()
		for n := range 11 {
			o.add(ack(n))
		}
		if _, err := o.next(t.Context()); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
		cancel()
		synctest.Wait()
	})
}
