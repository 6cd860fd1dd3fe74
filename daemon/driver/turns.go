package driver

import (
	"context"
	"sync"

	"github.com/retinue-sched/retinue/daemon/runner"
)

// turns gives what is done to one application an order. An application and its policy's binding are kept in two places: whoever creates,
// changes, binds or forgets has a turn, so that nobody sees one without the other.
type turns struct {
	mu     sync.Mutex
	queues map[runner.Key]*queue
}

type queue struct {
	wanted int           // by how many
	free   chan struct{} // holds a token while nobody has the turn
}

func newTurns() *turns { return &turns{queues: make(map[runner.Key]*queue)} }

// take waits for the turn. Who has it gives it back.
func (t *turns) take(ctx context.Context, key runner.Key) (back func(), err error) {
	q := t.join(key)
	select {
	case <-q.free:
		return func() {
			q.free <- struct{}{}
			t.leave(key, q)
		}, nil
	case <-ctx.Done():
		t.leave(key, q)
		return nil, failed(ctx.Err())
	}
}

func (t *turns) join(key runner.Key) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if q == nil {
		q = &queue{free: make(chan struct{}, 1)}
		q.free <- struct{}{}
		t.queues[key] = q
	}
	q.wanted++
	return q
}

func (t *turns) leave(key runner.Key, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.wanted--; q.wanted == 0 {
		delete(t.queues, key)
	}
}
