package task

import "github.com/retinue-sched/retinue/daemon/snapshot"

// record is a task with what only the book knows of it. It stands in exactly one lane at any time.
type record struct {
	Info
	since snapshot.Instant // when it entered its queue
	spent uint32           // attempts that count
	free  uint32           // attempts that ended through no fault of the task
	due   uint32           // its place among those that have a deadline, from 1; 0: it is not there
	fate  State            // Cancelled or Expired: what it becomes unless it succeeds; 0: it may still be tried
	bytes uint64           // that it takes up beside the record, once it has ended

	lane       *lane
	prev, next *record // in the lane
	job        *job
	older      *record // in the job
	newer      *record // in the job
}

// ref names the newest attempt.
func (r *record) ref() Ref { return Ref{Task: r.ID, Attempt: r.Attempt} }

// kill is the newest attempt with why it is to be ended.
func (r *record) kill() Kill { return Kill{Executor: r.Executor, Ref: r.ref(), Fate: r.fate} }

// lane is a line of tasks, first in, first out, from which any may step out: those that wait, those that one executor holds, those that ended.
type lane struct {
	first, last *record
	size        uint32
}

// enter moves r to the end of the lane, out of the one it stands in.
func (l *lane) enter(r *record) {
	r.leave()
	r.lane, r.prev = l, l.last
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.size++
}

// leave takes r out of its lane, if it stands in one.
func (r *record) leave() {
	l := r.lane
	if l == nil {
		return
	}
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	l.size--
	r.lane, r.prev, r.next = nil, nil, nil
}

// job is the tasks of one job in order of acceptance.
type job struct {
	name           string
	oldest, newest *record
}

func (j *job) add(r *record) {
	r.job, r.older = j, j.newest
	if j.newest == nil {
		j.oldest = r
	} else {
		j.newest.newer = r
	}
	j.newest = r
}

func (j *job) remove(r *record) {
	if r.older == nil {
		j.oldest = r.newer
	} else {
		r.older.newer = r.newer
	}
	if r.newer == nil {
		j.newest = r.older
	} else {
		r.newer.older = r.older
	}
	r.job, r.older, r.newer = nil, nil, nil
}
