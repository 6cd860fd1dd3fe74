package task

import (
	"cmp"
	"errors"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// ErrFull reports that the book holds as many tasks as it may. Trying later may help.
var ErrFull = errors.New("the task queue is full")

// ErrConflict reports that a key is already taken by a task that is not the same.
var ErrConflict = errors.New("the key names another task")

// freeRetries is how often a task may come back through no fault of its own before that counts, too: a bound on a task that goes in circles.
const freeRetries = 100

// Limits bounds a book.
type Limits struct {
	MaxQueued   uint32 // tasks that are accepted and not ended; more are refused
	QueuedBytes uint64 // of their commands, input, environment and names; more are refused; 0: no bound
	MaxAttempts uint32 // of a task that does not say; 0 means 1
	Retain      uint32 // ended tasks that are kept; the oldest go first, and with a task goes the memory of its key
	RetainBytes uint64 // of what they were and what they put out
}

// Book is an application's tasks. Each change costs time in proportion to what changes, however many tasks there are.
type Book struct {
	limits     Limits
	newest     ID
	records    table
	keys       map[string]*record
	jobs       map[string]*job
	queues     []*queue // ascending by profile
	held       map[snapshot.ID]*lane
	dues       dues
	ended      lane
	endedBytes uint64
	liveBytes  uint64 // of the tasks that have not ended
	counts     Counts
}

// queue is the tasks of one profile that wait. Those that were tried before go first: they are older than all that were not.
type queue struct {
	profile      snapshot.Profile
	again, fresh lane
	held         uint32 // tasks of this profile that executors hold
}

// New returns an empty book.
func New(l Limits) *Book {
	return &Book{limits: l, keys: map[string]*record{}, jobs: map[string]*job{}, held: map[snapshot.ID]*lane{}}
}

// SetLimits changes the bounds. Tasks that are queued stay, even beyond the new bound; ended ones beyond it go at once.
func (b *Book) SetLimits(l Limits) {
	b.limits = l
	b.trim()
}

// queue returns the profile's queue.
func (b *Book) queue(p snapshot.Profile) *queue {
	i, found := slices.BinarySearchFunc(b.queues, p, func(q *queue, p snapshot.Profile) int { return cmp.Compare(q.profile, p) })
	if !found {
		b.queues = slices.Insert(b.queues, i, &queue{profile: p})
	}
	return b.queues[i]
}

// attempts is how many attempts of a task may count.
func (b *Book) attempts(r *record) uint32 {
	return max(1, cmp.Or(r.Spec.MaxAttempts, b.limits.MaxAttempts))
}

// current returns the task of which ref is the newest attempt, if that executor holds it.
func (b *Book) current(executor snapshot.ID, ref Ref) *record {
	r := b.records.at(ref.Task)
	if r == nil || !r.State.held() || r.Attempt != ref.Attempt || r.Executor != executor {
		return nil
	}
	return r
}

// held reports whether an executor has the task.
func (s State) held() bool { return s == Launched || s == Running }

// wait puts a task into its queue.
func (b *Book) wait(now snapshot.Instant, r *record) {
	b.release(r)
	r.State, r.since = Queued, now
	b.counts.Queued++
	q := b.queue(r.Spec.Profile)
	if r.Attempt == 0 {
		q.fresh.enter(r)
		return
	}
	q.again.enter(r)
}

// give hands a task that waits to an executor as a new attempt.
func (b *Book) give(r *record, executor snapshot.ID, q *queue) {
	if r.Attempt > 0 {
		b.counts.Retried++
	}
	r.Attempt++
	r.Executor, r.Started, r.State = executor, 0, Launched
	b.counts.Queued--
	b.counts.Launched++
	q.held++
	b.holder(executor).enter(r)
}

// release takes a task from whoever has it, in the counts and in the lanes.
func (b *Book) release(r *record) {
	switch r.State {
	case Queued:
		b.counts.Queued--
	case Launched:
		b.counts.Launched--
	case Running:
		b.counts.Running--
	default: // not accepted yet
		return
	}
	if !r.State.held() {
		r.leave()
		return
	}
	b.queue(r.Spec.Profile).held--
	if from := r.lane; from.size == 1 {
		delete(b.held, r.Executor)
	}
	r.leave()
}

// end gives a task its terminal state, and lets go of the oldest ended tasks that are beyond the bounds.
func (b *Book) end(now snapshot.Instant, r *record, state State, result Report) {
	b.release(r)
	b.dues.drop(r)
	r.State, r.Ended, r.Result, r.fate = state, now, result, 0
	switch state {
	case Succeeded:
		b.counts.Succeeded++
	case Failed:
		b.counts.Failed++
	case Cancelled:
		b.counts.Cancelled++
	default:
		b.counts.Expired++
	}
	size := uint64(r.Spec.size()) //nolint:gosec // a sum of lengths
	b.liveBytes -= size
	r.bytes = size + uint64(len(result.Output)+len(result.Errors)+len(result.Text))
	b.endedBytes += r.bytes
	b.ended.enter(r)
	b.trim()
}

// trim forgets the oldest ended tasks until the rest is inside the bounds.
func (b *Book) trim() {
	for b.ended.size > b.limits.Retain || b.endedBytes > b.limits.RetainBytes {
		b.forget(b.ended.first)
	}
}

// forget drops an ended task.
func (b *Book) forget(r *record) {
	r.leave()
	b.endedBytes -= r.bytes
	b.records.remove(r.ID)
	delete(b.keys, r.Spec.Key)
	if j := r.job; j != nil {
		if j.remove(r); j.oldest == nil {
			delete(b.jobs, j.name)
		}
	}
}
