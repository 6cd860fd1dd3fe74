package actuator

import (
	"slices"
	"time"
)

// verb is a kind of call. Each has its own lane, so that neither waits for the other.
type verb uint8

const (
	creation verb = 0
	deletion verb = 1
	verbs         = 2
)

// String returns the verb, which is also its metric label.
func (v verb) String() string {
	if v == creation {
		return "create"
	}
	return "delete"
}

// lane is the orders of one kind that wait or are in flight.
type lane struct {
	window window
	flying int
	queued int
	ring   []*share  // applications with orders that wait, in the order of their turns
	paused time.Time // the cluster asked for a pause
}

// share is one application's part of a lane.
type share struct {
	orders []*order // waiting, first come first
	flying int
	streak int       // calls that went wrong in a row, those that were in flight together counted once
	since  time.Time // when the pause began
	paused time.Time // nothing is tried before
}

func (l *lane) push(s *share, o *order) {
	if len(s.orders) == 0 {
		l.ring = append(l.ring, s)
	}
	s.orders = append(s.orders, o)
	l.queued++
}

// drop takes an order that waits out of the lane.
func (l *lane) drop(s *share, o *order) {
	at := slices.Index(s.orders, o)
	if at < 0 {
		return
	}
	s.orders = slices.Delete(s.orders, at, at+1)
	l.queued--
	l.tidy(s)
}

// clear takes all orders of an application out of the lane.
func (l *lane) clear(s *share) {
	l.queued -= len(s.orders)
	s.orders = nil
	l.tidy(s)
}

func (l *lane) tidy(s *share) {
	if len(s.orders) == 0 {
		l.ring = slices.DeleteFunc(l.ring, func(in *share) bool { return in == s })
	}
}

// next takes the order whose turn it is, nil if none may be started now.
func (l *lane) next(now time.Time) *order {
	if l.flying >= l.window.limit || now.Before(l.paused) {
		return nil
	}
	for i, s := range l.ring {
		if now.Before(s.paused) || s.flying >= l.most() {
			continue
		}
		o := s.orders[0]
		s.orders = slices.Delete(s.orders, 0, 1)
		l.queued--
		l.ring = slices.Delete(l.ring, i, i+1)
		if len(s.orders) > 0 {
			l.ring = append(l.ring, s)
		}
		s.flying++
		l.flying++
		return o
	}
	return nil
}

// most is how many calls of one application may be in flight: not all, so that one whose calls hang leaves room for the others.
func (l *lane) most() int {
	if len(l.ring) < 2 {
		return l.window.limit
	}
	return max(1, l.window.limit*3/4)
}

// wake says when something may be started that may not be now; false if only the end of a call, or a new order, changes anything.
func (l *lane) wake(now time.Time) (time.Time, bool) {
	if l.flying >= l.window.limit || l.queued == 0 {
		return time.Time{}, false
	}
	var first time.Time
	for _, s := range l.ring {
		if s.flying < l.most() && (first.IsZero() || s.paused.Before(first)) {
			first = s.paused
			if first.IsZero() {
				first = now
			}
		}
	}
	if first.IsZero() {
		return time.Time{}, false
	}
	if first.Before(l.paused) {
		first = l.paused
	}
	return first, true
}

// window is how many calls may be in flight: one more after each window of good ones, half as many after congestion.
type window struct {
	limit, most int
	good        int
	shrunk      time.Time
}

func (w *window) succeed() {
	if w.good++; w.good >= w.limit && w.limit < w.most {
		w.limit, w.good = w.limit+1, 0
	}
}

// shrink halves the window, unless the call began before it was last halved: those in flight together are one piece of news.
func (w *window) shrink(now, began time.Time) {
	if !w.shrunk.IsZero() && began.Before(w.shrunk) {
		return
	}
	w.limit, w.good, w.shrunk = max(1, w.limit/2), 0, now
}
