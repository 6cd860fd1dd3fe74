package runner

import (
	"context"
	"sync"

	"github.com/retinue-sched/retinue/daemon/application"
)

// inboxHigh is how many events may wait before those who can wait must. The cluster's events and timers never wait: there are few of them.
const inboxHigh = 1 << 15

// inbox gathers events for one application, so that a step of its loop takes all that has come together.
type inbox struct {
	mu     sync.Mutex
	events []application.Event
	more   chan struct{} // holds one token while events is not empty
	room   chan struct{} // closed, and replaced, whenever the inbox was emptied
}

func newInbox() *inbox {
	return &inbox{more: make(chan struct{}, 1), room: make(chan struct{})}
}

// put adds ev and never waits.
func (in *inbox) put(ev application.Event) {
	in.mu.Lock()
	in.events = append(in.events, ev)
	in.mu.Unlock()
	select {
	case in.more <- struct{}{}:
	default:
	}
}

// putWhenRoom adds ev once fewer than inboxHigh events wait; a peer that talks faster than the application listens is held back, nobody else.
func (in *inbox) putWhenRoom(ctx context.Context, ev application.Event) error {
	for {
		in.mu.Lock()
		full, room := len(in.events) >= inboxHigh, in.room
		in.mu.Unlock()
		if !full {
			in.put(ev)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-room:
		}
	}
}

// take returns all that has come, and keeps spare's memory for what comes next.
func (in *inbox) take(spare []application.Event) []application.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.events
	in.events = spare[:0]
	close(in.room)
	in.room = make(chan struct{})
	return events
}
