// Package store shares one model.Server between the parts of a local cluster.
//
// The model is pure and belongs to one caller at a time; the store takes turns, knows the time, and wakes who waits for
// news. Nobody polls: a watch with nothing to show costs nothing.
package store

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Store is a model.Server that several goroutines may use. Make one with New.
type Store struct {
	mu      sync.Mutex
	server  *model.Server
	changed chan struct{} // closed and replaced at each write
}

// New returns a store around server, which from then on belongs to it.
func New(server *model.Server) *Store {
	return &Store{server: server, changed: make(chan struct{})}
}

// Do calls f with the time and the server, alone. f must not block and must not keep the server.
func (s *Store) Do(f func(now time.Time, server *model.Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.server.Version()
	f(time.Now(), s.server)
	if s.server.Version() != before {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// Changed returns a channel that closes at the next write after the call.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Next waits until the watch has something to show and returns it: at most limit events, none when the watch has ended.
// Its error is the cause of the end of ctx.
func (s *Store) Next(ctx context.Context, c *model.Cursor, limit int) ([]watch.Event, error) {
	for {
		events, changed := s.poll(c, limit)
		if len(events) > 0 || c.Ended() {
			return events, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		}
	}
}

func (s *Store) poll(c *model.Cursor, limit int) ([]watch.Event, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server.Next(c, limit), s.changed
}
