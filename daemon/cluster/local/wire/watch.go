package wire

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// eventsAtOnce bounds what is written between two looks at whether the client is still there.
const eventsAtOnce = 256

// watchEvent is one line of a watch.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// watch streams events until the client goes, its time is over, the server ends or the watch itself does.
func (c *call) watch(opts metav1.ListOptions) error {
	if c.ref.Name != "" {
		return notServed(c.r)
	}
	var cursor *model.Cursor
	var err error
	c.store.Do(func(_ time.Time, m *model.Server) { cursor, err = m.Watch(c.ref, opts) })
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", jsonType)
	c.w.WriteHeader(http.StatusOK)
	stream := &eventStream{call: c, enc: json.NewEncoder(c.w), first: true}
	if err := stream.flush(); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	stream.run(cursor, time.Now().Add(lifetime(opts.TimeoutSeconds)))
	return nil
}

// lifetime is how long a watch lasts: what the client asks, or half an hour to an hour so that clients do not all come back at once.
func lifetime(asked *int64) time.Duration {
	if asked != nil && *asked > 0 {
		return time.Duration(*asked) * time.Second
	}
	return 30*time.Minute + rand.N(30*time.Minute)
}

type eventStream struct {
	*call

	enc   *json.Encoder
	first bool
}

func (s *eventStream) run(cursor *model.Cursor, until time.Time) {
	ctx, cancel := s.untilDone(s.r.Context())
	defer cancel()
	for !cursor.Ended() && ctx.Err() == nil {
		wait := min(s.config.BookmarkEvery, time.Until(until))
		events, err := s.next(ctx, cursor, wait)
		switch {
		case errors.Is(err, errQuiet):
			if !s.bookmark(cursor) || !time.Now().Before(until) {
				return
			}
		case err != nil:
			return
		}
		for _, event := range events {
			if !s.send(event) {
				return
			}
		}
		if len(events) > 0 && s.flush() != nil {
			return
		}
		if !time.Now().Before(until) {
			s.bookmark(cursor)
			return
		}
	}
}

// bookmark tells the client how far it is, if it wants that, and reports whether it is still there.
func (s *eventStream) bookmark(cursor *model.Cursor) bool {
	var event watch.Event
	var ok bool
	s.store.Do(func(_ time.Time, m *model.Server) { event, ok = m.Bookmark(cursor) })
	if !ok {
		return true
	}
	return s.send(event) && s.flush() == nil
}

func (s *eventStream) send(event watch.Event) bool {
	err := s.enc.Encode(watchEvent{Type: event.Type, Object: s.shown(event.Object, s.first)})
	s.first = false
	return err == nil
}

func (s *eventStream) flush() error { return http.NewResponseController(s.w).Flush() }

// errQuiet says that nothing happened for a while.
var errQuiet = errors.New("nothing to show yet")

// next waits for events, at most for wait.
func (s *eventStream) next(ctx context.Context, cursor *model.Cursor, wait time.Duration) ([]watch.Event, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errQuiet)
	defer cancel()
	return s.store.Next(ctx, cursor, eventsAtOnce)
}
