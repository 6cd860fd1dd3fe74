package driver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/task"
)

func ack(n int) piece {
	return piece{16, func(m *apiv1.AttachResponse) {
		m.Acknowledged = append(m.Acknowledged, &apiv1.TaskRef{Task: uint64(n)})
	}}
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
			return t.Context().Err()
		}
		ended := errors.New("over")
		done := make(chan error)
		go func() { done <- o.drain(t.Context(), send, &pulse{}) }()
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
		go func() { _ = o.drain(ctx, stuck, &pulse{}) }()
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

// A message keeps to its size however large the pieces are, and a piece that is larger than a message goes alone.
func TestOutboxNeverMakesATooLargeMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 1000
		o := newOutbox(100, most+most/3)
		sizes := rapid.SliceOfN(rapid.IntRange(20, 2*most), 1, 20).Draw(t, "sizes")
		for _, size := range sizes {
			kill := &apiv1.Kill{Reason: strings.Repeat("x", size-20)}
			o.add(piece{around(kill), func(m *apiv1.AttachResponse) { m.Kills = append(m.Kills, kill) }})
		}
		for sent := 0; sent < len(sizes); {
			msg, err := o.next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			n := len(msg.GetKills())
			if n == 0 || (n > 1 && proto.Size(msg) > most) {
				t.Fatalf("a message holds %d pieces in %d bytes, of sizes %v", n, proto.Size(msg), sizes)
			}
			sent += n
		}
	})
}

// No piece is larger than it says: otherwise messages would outgrow what executors accept.
func TestPiecesSayTheirSize(t *testing.T) {
	s := &Server{cfg: DefaultConfig()}
	most := task.Ref{Task: math.MaxUint64, Attempt: math.MaxUint32}
	many := slices.Repeat([]task.Ref{most}, 2500)
	spec := &task.Spec{
		Key: "k", Command: slices.Repeat([]string{""}, 4096), Input: make([]byte, 1<<20),
		Env: slices.Repeat([]task.Env{{Name: "a"}}, 4096), Files: slices.Repeat([]task.File{{}}, 4096),
	}
	pieces := launches([]task.Launch{{Ref: most, Spec: spec}})
	pieces = append(pieces, kills(application.KillTasks{Tasks: many, Text: strings.Repeat("x", 5000)})...)
	pieces = append(pieces, acknowledgements(many)...)
	pieces = append(pieces, s.admitted(application.Admit{Session: math.MaxUint64, Discard: many}))
	if acks := acknowledgements(many); len(acks) != 3 {
		t.Errorf("%d acknowledgements are in %d pieces", len(many), len(acks))
	}
	for i, p := range pieces {
		msg := &apiv1.AttachResponse{}
		p.put(msg)
		if size := proto.Size(msg); size > p.size || p.size > 2*size+64 {
			t.Errorf("piece %d of %d says %d bytes and has %d", i, len(pieces), p.size, size)
		}
	}
}
