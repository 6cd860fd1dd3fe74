package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/spec"
)

// ErrExists reports that an application of the same name is there.
var ErrExists = errors.New("an application of this name exists already")

// ErrNotFound reports that no application of that name is there.
var ErrNotFound = errors.New("no such application")

// Member is an application in the set: what it is, and who runs it.
type Member struct {
	*Runner
	CreatedAt  time.Time // wall clock, for people
	definition atomic.Pointer[spec.Application]
	gone       chan struct{} // closed when it is forgotten
}

// Definition returns what the application is now. It never changes; a changed one replaces it.
func (m *Member) Definition() *spec.Application { return m.definition.Load() }

// Set is all applications of the daemon.
type Set struct {
	log      *slog.Logger
	carriers Carriers
	origin   time.Time
	start    chan *Member

	creating sync.Mutex // held while an application gets its incarnation

	mu      sync.Mutex
	members map[Key]*Member
	changed *broadcast // when a member comes or goes
}

// NewSet makes an empty set. Its clock begins now.
func NewSet(carriers Carriers, log *slog.Logger) *Set {
	return &Set{
		log: log, carriers: carriers, origin: time.Now(), start: make(chan *Member),
		members: make(map[Key]*Member), changed: newBroadcast(),
	}
}

// Now is the moment on the clock that all applications share. It is monotonic and never 0.
func (s *Set) Now() snapshot.Instant { return snapshot.Instant(time.Since(s.origin)) + 1 }

// Wall turns a moment into a time for people.
func (s *Set) Wall(i snapshot.Instant) time.Time { return s.origin.Add(time.Duration(i)) }

// Run drives the applications until ctx is done and returns context.Cause(ctx). When it returns, none of them runs.
func (s *Set) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-s.start:
			running.Go(func() { s.drive(ctx, m) })
		}
	}
}

// drive runs one member until ctx is done or it was deleted and has ended.
func (s *Set) drive(ctx context.Context, m *Member) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	parts.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.gone:
			cancel(ErrClosed)
		}
	})
	parts.Go(func() { _ = m.decide(ctx) }) // both only ever return because ctx is done
	parts.Go(func() { _ = m.run(ctx) })
	parts.Wait()
}

// Create adds an application and starts it. It returns ErrExists, with the member that is there, if there is one.
func (s *Set) Create(ctx context.Context, def *spec.Application) (*Member, error) {
	s.creating.Lock()
	defer s.creating.Unlock()
	key := Key{Namespace: def.Config.Namespace, ID: def.Config.ID}
	if there, err := s.Find(key); err == nil {
		return there, ErrExists
	}
	incarnation, err := s.carriers.Incarnation()
	if err != nil {
		return nil, fmt.Errorf("starting application %s: %w", key, err)
	}
	def = def.Incarnate(incarnation)
	m := &Member{CreatedAt: time.Now(), gone: make(chan struct{}), Runner: newRunner(s.config(def), s.carriers, s.Now, s.log)}
	m.definition.Store(def)
	s.mu.Lock()
	s.members[key] = m
	s.mu.Unlock()
	s.carriers.Joined(key)
	select {
	case s.start <- m:
		s.changed.announce()
		return m, nil
	case <-ctx.Done():
		s.forget(m)
		m.abandon(context.Cause(ctx))
		return nil, fmt.Errorf("starting application %s: %w", key, context.Cause(ctx))
	}
}

// config is what the state machine is told of an application.
func (s *Set) config(def *spec.Application) application.Config {
	cfg := def.Config
	cfg.Epoch = s.origin.UnixMilli()
	return cfg
}

// Update replaces what an application is. The state machine may refuse; the definition is the new one from the moment at which it accepts, even if
// ctx has ended by then.
func (s *Set) Update(ctx context.Context, m *Member, def *spec.Application) (application.Refusal, error) {
	def = def.Incarnate(m.Definition().Config.Incarnation)
	reply, err := m.call(ctx, func(request uint64) application.Event {
		return application.Configure{Request: request, Config: s.config(def)}
	}, func(reply application.Reply) {
		if reply.Refused.Code == 0 {
			m.definition.Store(def)
		}
	})
	return reply.Refused, err
}

// Delete stops an application, waits until it has ended, and forgets it. If ctx ends first the application stays, stopped, and Delete can be called again.
func (s *Set) Delete(ctx context.Context, m *Member) error {
	reply, err := m.Call(ctx, func(request uint64) application.Event { return application.Stop{Request: request} })
	if err != nil {
		return err
	}
	if reply.Refused.Code != 0 && reply.Refused.Code != application.RefusedStopped {
		return fmt.Errorf("stopping application %s: %s", m.Key(), reply.Refused.Text)
	}
	select {
	case <-m.Ended():
	case <-ctx.Done():
		return fmt.Errorf("waiting for the executors of application %s to end: %w", m.Key(), context.Cause(ctx))
	}
	s.forget(m)
	return nil
}

func (s *Set) forget(m *Member) {
	s.mu.Lock()
	if s.members[m.Key()] == m {
		delete(s.members, m.Key())
		close(m.gone)
		s.carriers.Left(m.Key())
	}
	s.mu.Unlock()
	s.changed.announce()
}

// Find returns an application, or ErrNotFound.
func (s *Set) Find(key Key) (*Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.members[key]
	if !ok {
		return nil, ErrNotFound
	}
	return m, nil
}

// All lists the applications of a namespace, or all, by namespace and id.
func (s *Set) All(namespace string) []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := slices.Collect(maps.Values(s.members))
	if namespace != "" {
		members = slices.DeleteFunc(members, func(m *Member) bool { return m.Key().Namespace != namespace })
	}
	slices.SortFunc(members, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.Key().Namespace, b.Key().Namespace), cmp.Compare(a.Key().ID, b.Key().ID))
	})
	return members
}

// Changed returns a channel that is closed when an application comes or goes.
func (s *Set) Changed() <-chan struct{} { return s.changed.wait() }

// Post hands an event to an application; one that is not there does not get it, and Post says so.
func (s *Set) Post(key Key, ev application.Event) bool {
	m, err := s.Find(key)
	if err != nil {
		return false
	}
	m.Post(ev)
	return true
}
