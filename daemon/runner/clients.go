package runner

import (
	"context"
	"errors"
	"sync"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/task"
)

// ErrClosed reports that the application was deleted while somebody waited.
var ErrClosed = errors.New("the application is gone")

// ErrStopped reports that the daemon ended while somebody waited.
var ErrStopped = errors.New("the daemon is stopping")

// ErrSlow reports that a watcher did not read and was cut off. It may watch again: what is retained is listed anew.
var ErrSlow = errors.New("the watcher did not read fast enough and was cut off; watch again")

// How much may wait for a watcher before it is cut off: changed tasks, and bytes of what they put out.
const (
	watchBacklog = 1 << 16
	watchBytes   = 64 << 20
)

// clients are those who wait for replies and those who watch tasks.
type clients struct {
	mu      sync.Mutex
	closed  error // why nobody is answered any more; nil until then
	next    uint64
	waiting map[uint64]waiter
	watches map[uint64]*Watch
}

// waiter is one who waits for a reply.
type waiter struct {
	answer chan application.Reply
	then   func(application.Reply) // may be nil
}

func newClients() *clients {
	return &clients{waiting: make(map[uint64]waiter), watches: make(map[uint64]*Watch)}
}

func (c *clients) expect(then func(application.Reply)) (uint64, <-chan application.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	answer := make(chan application.Reply, 1)
	if c.closed != nil {
		close(answer)
		return c.next, answer
	}
	c.waiting[c.next] = waiter{answer, then}
	return c.next, answer
}

func (c *clients) forget(request uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, request)
}

func (c *clients) reply(reply application.Reply) {
	c.mu.Lock()
	w, ok := c.waiting[reply.Request]
	delete(c.waiting, reply.Request)
	c.mu.Unlock()
	if !ok {
		return
	}
	if w.then != nil {
		w.then(reply)
	}
	w.answer <- reply
}

func (c *clients) tasks(changed application.TasksChanged) {
	c.mu.Lock()
	watch := c.watches[changed.Watch]
	c.mu.Unlock()
	if watch != nil {
		watch.add(changed.Tasks)
	}
}

// closeAll ends all waiting, now and later, and says why.
func (c *clients) closeAll(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = why
	for request, w := range c.waiting {
		delete(c.waiting, request)
		close(w.answer)
	}
	for id, watch := range c.watches {
		delete(c.watches, id)
		watch.fail(why)
	}
}

// why returns why nobody is answered any more.
func (c *clients) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Watch is a stream of changed tasks for one reader.
type Watch struct {
	id     uint64
	mu     sync.Mutex
	got    []task.Info
	bytes  int // of what got's tasks put out
	err    error
	more   chan struct{}
	failed chan struct{} // closed when err is set
}

// Failed is closed when the watch has ended before its reader did; Err says why.
func (w *Watch) Failed() <-chan struct{} { return w.failed }

// Err is why the watch ended, or nil.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Watch) add(tasks []task.Info) {
	bytes := 0
	for i := range tasks {
		bytes += len(tasks[i].Result.Output) + len(tasks[i].Result.Errors)
	}
	w.mu.Lock()
	slow := len(w.got)+len(tasks) > watchBacklog || w.bytes+bytes > watchBytes
	if w.err == nil && !slow {
		w.got = append(w.got, tasks...)
		w.bytes += bytes
	}
	w.mu.Unlock()
	if slow {
		w.fail(ErrSlow)
		return
	}
	w.wake()
}

func (w *Watch) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
		close(w.failed)
		if errors.Is(err, ErrSlow) {
			w.got, w.bytes = nil, 0 // nobody will want them, and they may be large
		}
	}
	w.mu.Unlock()
	w.wake()
}

func (w *Watch) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// Next returns the tasks that changed since the last call, and waits if there are none. It returns ErrSlow, ErrClosed or ErrStopped at the end, or the context's cause.
func (w *Watch) Next(ctx context.Context) ([]task.Info, error) {
	for {
		w.mu.Lock()
		got, err := w.got, w.err
		w.got, w.bytes = nil, 0
		w.mu.Unlock()
		if len(got) > 0 {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-w.more:
		}
	}
}

// WatchTasks begins a watch of the tasks of a job (all if job is empty). listed are those that match now, Next of the watch gives what changes from then on; stop ends it.
func (r *Runner) WatchTasks(ctx context.Context, job string) (listed []task.Info, watch *Watch, stop func(), err error) {
	watch = r.clients.watch()
	stop = func() {
		r.clients.unwatch(watch.id)
		r.Post(application.UnwatchTasks{Watch: watch.id})
	}
	reply, err := r.Call(ctx, func(request uint64) application.Event {
		return application.WatchTasks{Request: request, Watch: watch.id, Job: job}
	})
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return reply.Tasks, watch, stop, nil
}

func (c *clients) watch() *Watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	w := &Watch{id: c.next, more: make(chan struct{}, 1), failed: make(chan struct{})}
	if c.closed != nil {
		w.fail(c.closed)
		return w
	}
	c.watches[w.id] = w
	return w
}

func (c *clients) unwatch(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watches, id)
}

// broadcast lets any number of readers wait for the next announcement.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

func (b *broadcast) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
