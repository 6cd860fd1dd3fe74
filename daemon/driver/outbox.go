package driver

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// outbox gathers what is to be sent on a stream. Whoever fills it never waits; whoever empties it sends all that has gathered in one message,
// so that a busy stream batches and an idle one does not linger.
type outbox struct {
	max  int // pieces that may wait
	size int // most bytes of one message, unless a single piece has more

	mu      sync.Mutex
	pieces  []piece
	end     error // why the stream ends, if it does
	ending  bool  // end once everything has been sent
	ended   bool  // end at once
	changed chan struct{}
}

// piece is what a message is made of. Its size is known before it is added, so that a message never outgrows what the peer accepts.
type piece struct {
	size int // most bytes that it takes in the encoded message
	put  func(*apiv1.AttachResponse)
}

func newOutbox(maxPieces, maxMessage int) *outbox {
	return &outbox{max: maxPieces, size: maxMessage - maxMessage/4, changed: make(chan struct{}, 1)}
}

// add queues a piece. A peer that lets too many wait is cut off.
func (o *outbox) add(p piece) {
	o.mu.Lock()
	switch {
	case o.ending || o.ended:
	case len(o.pieces) >= o.max:
		o.ended, o.end = true, refuse(codes.ResourceExhausted, "TOO_SLOW", "more than %d messages wait for this executor", o.max)
	default:
		o.pieces = append(o.pieces, p)
	}
	o.mu.Unlock()
	o.wake()
}

// close ends the stream at once.
func (o *outbox) close(err error) {
	o.mu.Lock()
	if !o.ended {
		o.ended, o.end = true, err
	}
	o.mu.Unlock()
	o.wake()
}

// finish ends the stream once all that waits has been sent.
func (o *outbox) finish(err error) {
	o.mu.Lock()
	if !o.ended && !o.ending {
		o.ending, o.end = true, err
	}
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// drain sends until the stream ends and returns why.
func (o *outbox) drain(ctx context.Context, send func(*apiv1.AttachResponse) error, p *pulse) error {
	for {
		msg, err := o.next(ctx)
		if err != nil {
			return err
		}
		if err := p.beat(func() error { return send(msg) }); err != nil {
			return err
		}
	}
}

// next waits for something to send and puts as much of it into a message as fits.
func (o *outbox) next(ctx context.Context) (*apiv1.AttachResponse, error) {
	for {
		o.mu.Lock()
		if o.ended || (o.ending && len(o.pieces) == 0) {
			err := o.end
			o.mu.Unlock()
			return nil, err
		}
		if len(o.pieces) > 0 {
			msg := &apiv1.AttachResponse{}
			n := o.fill(msg)
			rest := copy(o.pieces, o.pieces[n:])
			clear(o.pieces[rest:])
			o.pieces = o.pieces[:rest]
			o.mu.Unlock()
			return msg, nil
		}
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-o.changed:
		}
	}
}

// fill puts as many pieces into msg as fit, but at least one, and returns how many.
func (o *outbox) fill(msg *apiv1.AttachResponse) int {
	n := 0
	for bytes := 0; n < len(o.pieces); n++ {
		bytes += o.pieces[n].size
		if n > 0 && bytes > o.size {
			break
		}
		o.pieces[n].put(msg)
	}
	return n
}
