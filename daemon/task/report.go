package task

import "github.com/retinue-sched/retinue/daemon/snapshot"

// Recorded is what came of reports.
type Recorded struct {
	Ack      []Ref  // ends that the executor may forget, in the order of the reports
	Changed  []Info // tasks whose state changed, one entry for each change, in the order of the reports
	Requeued int    // how many of them wait again
}

// Report records what an executor says of attempts. Every end is acknowledged, also of an attempt that is unknown, superseded or already
// recorded; those change nothing.
//
// What an end means: a success ends the task. A failure or a timeout costs an attempt, and the task is tried again while it has any. An
// invalid task ends as Failed at once. An attempt that was returned, or killed without anybody having cancelled the task, costs nothing, up to
// a bound. A task that was cancelled and did not succeed is Cancelled; one whose deadline is over is Expired.
func (b *Book) Report(now snapshot.Instant, executor snapshot.ID, reports []Report) Recorded {
	var out Recorded
	for _, report := range reports {
		if report.Outcome != OutcomeStarted {
			out.Ack = append(out.Ack, report.Ref)
		}
		r := b.current(executor, report.Ref)
		switch {
		case r == nil:
		case report.Outcome != OutcomeStarted:
			b.settle(now, r, report)
			out.note(r)
		case r.State == Launched: // a second report of the start changes nothing
			r.State, r.Started = Running, now
			b.counts.Launched--
			b.counts.Running++
			out.note(r)
		}
	}
	return out
}

func (o *Recorded) note(r *record) {
	o.Changed = append(o.Changed, r.Info)
	if r.State == Queued {
		o.Requeued++
	}
}

// settle is the one place where the end of an attempt becomes the next state of its task.
func (b *Book) settle(now snapshot.Instant, r *record, report Report) {
	switch free := report.Outcome == OutcomeReturned || report.Outcome == OutcomeKilled; {
	case report.Outcome == OutcomeSucceeded:
		b.end(now, r, Succeeded, report)
	case r.fateAt(now) != 0:
		b.finish(now, r, r.fateAt(now), report)
	case report.Outcome == OutcomeInvalid:
		r.spent++
		b.end(now, r, Failed, report)
	case free && r.free < freeRetries:
		r.free++
		b.wait(now, r)
	default:
		b.charge(now, r, report)
	}
}

// charge counts an attempt against its task.
func (b *Book) charge(now snapshot.Instant, r *record, report Report) {
	if r.spent++; r.spent >= b.attempts(r) {
		b.end(now, r, Failed, report)
		return
	}
	r.Result = report
	if len(report.Output) > 0 { // only the output of the last attempt is worth its memory while the task lives
		r.Result.Output, r.Result.Truncated = nil, true
	}
	b.wait(now, r)
}
