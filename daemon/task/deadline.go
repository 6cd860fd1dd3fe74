package task

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Deadline is the moment by which the task must have ended, 0 if it may take for ever.
func (i Info) Deadline() snapshot.Instant {
	if i.Spec.Deadline == 0 {
		return 0
	}
	return i.Accepted.Add(i.Spec.Deadline)
}

// NextDeadline is the first moment at which Expire finds something to do, 0 if there is none. It costs nothing to ask.
func (b *Book) NextDeadline() snapshot.Instant {
	if len(b.dues) == 0 {
		return 0
	}
	return b.dues[0].Deadline()
}

// Expire ends the tasks whose deadlines are over.
//
// A task that waits is Expired at once and is among changed; one that an executor holds is when that executor says that it ended or is lost,
// and is among kills, once: Adopt and Cancel repeat it. One that succeeds before it is killed has succeeded, and one that was cancelled before
// its deadline is Cancelled. Both lists are in order of the deadlines, those of one moment in order of acceptance.
func (b *Book) Expire(now snapshot.Instant) (changed []Info, kills []Kill) {
	for len(b.dues) > 0 && b.dues[0].overdue(now) {
		r := b.dues[0]
		if r.State == Queued {
			b.finish(now, r, Expired, r.Result)
			changed = append(changed, r.Info)
			continue
		}
		b.condemn(r, Expired)
		kills = append(kills, r.kill())
	}
	return changed, kills
}

// condemn settles what becomes of a task that an executor holds, unless it succeeds. Its deadline is of no interest any more.
func (b *Book) condemn(r *record, fate State) {
	r.fate = fate
	b.dues.drop(r)
}

// overdue reports whether the task's deadline is over.
func (r *record) overdue(now snapshot.Instant) bool {
	at := r.Deadline()
	return at != 0 && at <= now
}

// fateAt is what becomes of the task unless it succeeds, 0 while it may still be tried. A deadline counts from its moment on, whether Expire was
// called since or not.
func (r *record) fateAt(now snapshot.Instant) State {
	if r.fate == 0 && r.overdue(now) {
		return Expired
	}
	return r.fate
}

// finish gives a task the end that it was to have if it did not succeed. The result is that of its last attempt, or of the newest that failed.
func (b *Book) finish(now snapshot.Instant, r *record, fate State, result Report) {
	if fate == Expired {
		result.Text = r.lateText(result)
		if result.Outcome == 0 {
			result.Ref = r.ref()
		}
	}
	b.end(now, r, fate, result)
}

// lateText says of a task that its deadline passed, and why it had not ended by then as far as its last attempt tells.
func (r *record) lateText(last Report) string {
	text := fmt.Sprintf("its deadline of %v passed ", r.Spec.Deadline)
	switch r.Attempt {
	case 0:
		text += "before it was tried"
	case 1:
		text += "after 1 attempt"
	default:
		text += fmt.Sprintf("after %d attempts", r.Attempt)
	}
	if last.Text == "" || last.Outcome == OutcomeKilled { // that it was killed follows from the deadline
		return text
	}
	return text + ": " + last.Text
}

// dues are the tasks whose deadlines are still to be seen to, the next one first: a heap in which each task knows its place, so that one that
// ends steps out and is not kept until a moment that no longer matters.
type dues []*record

// add enters a task, if it has a deadline.
func (d *dues) add(r *record) {
	if r.Spec.Deadline != 0 {
		heap.Push(d, r)
	}
}

// drop takes a task out, if it is there.
func (d *dues) drop(r *record) {
	if r.due != 0 {
		heap.Remove(d, int(r.due)-1)
	}
}

// The rest is what package heap needs.

func (d dues) Len() int { return len(d) }

func (d dues) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(d[i].Deadline(), d[j].Deadline()), cmp.Compare(d[i].ID, d[j].ID)) < 0
}

func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].due, d[j].due = uint32(i)+1, uint32(j)+1 //nolint:gosec // no more than the bound on tasks
}

func (d *dues) Push(x any) {
	r, _ := x.(*record)
	*d = append(*d, r)
	r.due = uint32(len(*d)) //nolint:gosec // no more than the bound on tasks
}

func (d *dues) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	r.due = 0
	return r
}
