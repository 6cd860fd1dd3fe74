package executor

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// Bounds of what an executor remembers. A daemon that keeps to the slots comes nowhere near them.
const (
	maxEarlyKills = 1024
	maxDone       = 8192
	maxWaiting    = 1024                     // launches beyond the slots; more are returned
	maxReports    = apiv1.MaxMessage - 1<<20 // bytes of the reports in one message
)

// ref names one attempt of a task.
type ref struct {
	task    uint64
	attempt uint32
}

func refOf(r *apiv1.TaskRef) ref   { return ref{task: r.GetTask(), attempt: r.GetAttempt()} }
func (r ref) wire() *apiv1.TaskRef { return &apiv1.TaskRef{Task: r.task, Attempt: r.attempt} }

// ending is why an attempt that runs is ended.
type ending uint8

const (
	cancel ending = iota + 1 // the daemon asked: report it as killed
	giveUp                   // the executor leaves: report it as returned
	drop                     // nobody wants to hear of it
)

// order tells an attempt to end.
type order struct {
	how    ending
	reason string
	grace  time.Duration // 0: as the task says
}

// stage is where an attempt is in its life here.
//
//	waiting ──► running ──► ended ──► (acknowledged: forgotten)
type stage uint8

const (
	waiting stage = iota
	running
	ended
)

// attempt is one attempt that the executor was given.
type attempt struct {
	ref     ref
	spec    *apiv1.TaskSpec
	stop    chan order // holds at most the newest order
	stage   stage
	started bool // its program runs, or ran
	dropped bool
	dirty   bool          // it is in the ledger's list of what there is to say
	end     *apiv1.Report // set when it has ended
}

// ledger is what the executor was given and what it has to say about it. Several goroutines use it.
type ledger struct {
	mu       sync.Mutex
	start    func(*attempt) // takes a slot; called without the lock
	free     uint32
	attempts map[ref]*attempt
	waiting  []*attempt
	early    *recent // killed before they were launched
	done     *recent // acknowledged or dropped: not to be run again
	dirty    []*attempt
	closed   string // why nothing is taken any more
	leaving  string // what is to be told to the daemon about it
	goodbye  bool   // and whether it has been, in this session
	silent   bool   // closed and empty
	quietly  chan struct{}
	changed  chan struct{} // holds a token when there may be something to send
}

func newLedger(slots uint32, start func(*attempt)) *ledger {
	return &ledger{
		start: start, free: slots, attempts: map[ref]*attempt{}, early: newRecent(maxEarlyKills), done: newRecent(maxDone),
		quietly: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// launch takes an attempt, unless it is already known.
func (l *ledger) launch(x *apiv1.Launch) {
	l.mu.Lock()
	r := refOf(x.GetTask())
	if l.attempts[r] != nil || l.done.has(r) {
		l.mu.Unlock()
		return
	}
	att := &attempt{ref: r, spec: x.GetSpec(), stop: make(chan order, 1)}
	l.attempts[r] = att
	begin := false
	switch {
	case l.early.has(r):
		l.finish(att, att.report(apiv1.Outcome_OUTCOME_KILLED, "it was ended before it began"))
	case l.closed != "":
		l.finish(att, att.report(apiv1.Outcome_OUTCOME_RETURNED, l.closed))
	case l.free > 0:
		l.free--
		att.stage, begin = running, true
	case len(l.waiting) < maxWaiting:
		l.waiting = append(l.waiting, att)
	default:
		l.finish(att, att.report(apiv1.Outcome_OUTCOME_RETURNED, "the executor was given far more than it has slots for"))
	}
	l.mu.Unlock()
	if begin {
		l.start(att)
	}
}

// next returns the attempt that a slot goes on with, or gives the slot back.
func (l *ledger) next() *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.free++
		return nil
	}
	att := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	att.stage = running
	return att
}

// began notes that an attempt's program runs.
func (l *ledger) began(att *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	att.started = true
	l.say(att)
}

// end notes how an attempt that ran has ended.
func (l *ledger) end(att *attempt, report *apiv1.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(att, report)
}

func (l *ledger) finish(att *attempt, report *apiv1.Report) {
	att.stage, att.spec = ended, nil
	if att.dropped {
		l.forget(att)
		return
	}
	att.end = report
	l.say(att)
}

// say puts an attempt on the list of what there is to report.
func (l *ledger) say(att *attempt) {
	if !att.dirty {
		att.dirty = true
		l.dirty = append(l.dirty, att)
	}
	l.wake()
}

// wake makes the writer look.
func (l *ledger) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// kill ends an attempt. One that is not known yet will not be run.
func (l *ledger) kill(r ref, o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	att := l.attempts[r]
	if att == nil {
		if o.how == cancel && !l.done.has(r) {
			l.early.add(r)
		}
		return
	}
	l.stop(att, o)
}

// stop ends an attempt, whatever stage it is in. The lock is held.
func (l *ledger) stop(att *attempt, o order) {
	att.dropped = att.dropped || o.how == drop
	switch att.stage {
	case running:
		select {
		case <-att.stop: // an order that nobody has read yet
		default:
		}
		att.stop <- o
	case waiting:
		l.waiting = slices.DeleteFunc(l.waiting, func(x *attempt) bool { return x == att })
		l.finish(att, att.report(o.outcome(), o.text()))
	case ended:
		if att.dropped {
			l.forget(att)
		}
	}
}

// stopAll ends every attempt.
func (l *ledger) stopAll(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, att := range l.attempts { // in any order: they do not depend on each other
		l.stop(att, o)
	}
}

// acknowledge forgets an end that the daemon has recorded.
func (l *ledger) acknowledge(r ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if att := l.attempts[r]; att != nil && att.stage == ended {
		l.forget(att)
	}
}

func (l *ledger) forget(att *attempt) {
	delete(l.attempts, att.ref)
	l.done.add(att.ref)
	att.end = nil
	l.settle()
}

// close returns what waits, and everything that comes from now on.
func (l *ledger) close(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut(why)
}

func (l *ledger) shut(why string) {
	if l.closed != "" {
		return
	}
	l.closed = why
	returned := l.waiting
	l.waiting = nil
	for _, att := range returned {
		l.finish(att, att.report(apiv1.Outcome_OUTCOME_RETURNED, why))
	}
	l.settle()
}

// leave closes the ledger and has the daemon told.
func (l *ledger) leave(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut(why)
	l.leaving = why
	l.settle()
	l.wake()
}

// settle tells who waits for quiet. The lock is held.
func (l *ledger) settle() {
	if l.leaving != "" && len(l.attempts) == 0 && !l.silent {
		l.silent = true
		close(l.quietly)
	}
}

// quiet is closed when the executor leaves, everything has ended and all ends are acknowledged.
func (l *ledger) quiet() <-chan struct{} { return l.quietly }

// holds lists the attempts that are not over for the daemon, and forgets what an earlier session was told.
func (l *ledger) holds() []*apiv1.TaskRef {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goodbye = false
	refs := make([]*apiv1.TaskRef, 0, len(l.attempts))
	for r := range l.attempts { // the daemon sorts
		refs = append(refs, r.wire())
	}
	return refs
}

// repeat puts everything on the list again: what was sent in an earlier session may not have arrived.
func (l *ledger) repeat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, att := range l.attempts {
		if att.started || att.stage == ended {
			l.say(att)
		}
	}
}

// collect fills a message with what there is to say, as far as it fits. It reports whether there is anything in it, and whether more is left.
func (l *ledger) collect(m *apiv1.AttachRequest) (something, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving != "" && !l.goodbye {
		l.goodbye, m.Leave, something = true, &apiv1.Leave{Text: l.leaving}, true
	}
	size, taken := 0, 0
	for _, att := range l.dirty {
		if l.attempts[att.ref] == att && !att.dropped {
			report := att.end
			if report == nil {
				report = att.report(apiv1.Outcome_OUTCOME_STARTED, "")
			}
			n := proto.Size(report) + 16
			if size > 0 && size+n > maxReports {
				more = true
				break
			}
			size, something = size+n, true
			m.Reports = append(m.Reports, report)
		}
		att.dirty = false
		taken++
	}
	l.dirty = slices.Delete(l.dirty, 0, taken)
	return something, more
}
