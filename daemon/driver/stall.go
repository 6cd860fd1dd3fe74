package driver

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// pulse shows whether a peer takes what is sent to it. One goroutine sends, another looks.
type pulse struct {
	onItsWay atomic.Uint64 // number of the message that is being sent, 0 while there is none
	sent     uint64        // the sender's
	seen     uint64        // the looker's
}

// beat sends one message.
func (p *pulse) beat(send func() error) error {
	p.sent++
	p.onItsWay.Store(p.sent)
	defer p.onItsWay.Store(0)
	return send()
}

// stalled reports whether the message that was on its way at the last look still is.
func (p *pulse) stalled() bool {
	now := p.onItsWay.Load()
	stalled := now != 0 && now == p.seen
	p.seen = now
	return stalled
}

// tell lets talk send on a client's stream, beside this call: it returns once talk has, but also when the daemon stops and when the client
// takes nothing for too long. Then talk's context is done and its sends fail.
func tell[M any](s *Server, stream grpc.ServerStreamingServer[M], talk func(ctx context.Context, send func(*M) error) error) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	p := &pulse{}
	over := make(chan error, 1)
	go func() {
		over <- talk(ctx, func(msg *M) error {
			return p.beat(func() error { return stream.Send(msg) })
		})
	}()
	look := time.NewTicker(s.cfg.StallTimeout)
	defer look.Stop()
	for {
		select {
		case err := <-over:
			return err
		case <-s.stopping:
			return refuse(codes.Unavailable, "RESTARTING", "the daemon restarts")
		case <-look.C:
			if p.stalled() {
				return refuse(codes.ResourceExhausted, "TOO_SLOW", "the client took no message for %v: call again", s.cfg.StallTimeout)
			}
		}
	}
}
