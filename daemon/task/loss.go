package task

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Holds lists the attempts that an executor has been given and whose ends are not recorded, by task.
func (b *Book) Holds(executor snapshot.ID) []Ref {
	var refs []Ref
	for _, r := range b.heldBy(executor) {
		refs = append(refs, r.ref())
	}
	return refs
}

// Busy is how many attempts an executor has been given whose ends are not recorded.
func (b *Book) Busy(executor snapshot.ID) uint32 {
	if l := b.held[executor]; l != nil {
		return l.size
	}
	return 0
}

// ExecutorLost takes everything from an executor that will not report any more. A loss to be blamed costs each task that it held exactly one
// attempt, whether it was seen to start or not; any other costs none. It returns the tasks, which wait or have ended now, by task.
func (b *Book) ExecutorLost(now snapshot.Instant, executor snapshot.ID, loss Loss) (changed []Info) {
	for _, r := range b.heldBy(executor) {
		b.lose(now, r, loss)
		changed = append(changed, r.Info)
	}
	return changed
}

// Adoption is what came of an executor's list of what it holds. All lists are by task.
type Adoption struct {
	Keep    []Ref  // it goes on with these
	Discard []Ref  // it is to end these and report nothing: superseded, recorded or never given
	Kill    []Kill // those of Keep that were cancelled, or whose deadline is over: the order to end them may not have reached it
	Changed []Info // tasks that it was given and does not have: they wait again, or have ended
}

// Adopt compares what an executor says it holds, when it comes back, with what it was given. An attempt that it does not have and was not
// seen to start never reached it and costs nothing; one that was seen to start counts.
func (b *Book) Adopt(now snapshot.Instant, executor snapshot.ID, holds []Ref) Adoption {
	var out Adoption
	holds = slices.Clone(holds)
	slices.SortFunc(holds, compareRefs)
	holds = slices.Compact(holds)
	for _, ref := range holds {
		r := b.current(executor, ref)
		if r == nil {
			out.Discard = append(out.Discard, ref)
			continue
		}
		out.Keep = append(out.Keep, ref)
		if r.fate != 0 {
			out.Kill = append(out.Kill, r.kill())
		}
	}
	for _, r := range b.heldBy(executor) {
		if _, kept := slices.BinarySearchFunc(holds, r.ref(), compareRefs); !kept {
			b.lose(now, r, Loss{Text: "the executor came back without it", Blameful: r.State == Running})
			out.Changed = append(out.Changed, r.Info)
		}
	}
	return out
}

// lose ends an attempt in the name of an executor that cannot.
func (b *Book) lose(now snapshot.Instant, r *record, loss Loss) {
	outcome := OutcomeReturned
	if loss.Blameful {
		outcome = OutcomeFailed
	}
	b.settle(now, r, Report{Ref: r.ref(), Outcome: outcome, Text: loss.Text})
}

// heldBy lists what an executor holds, by task.
func (b *Book) heldBy(executor snapshot.ID) []*record {
	l := b.held[executor]
	if l == nil {
		return nil
	}
	records := make([]*record, 0, l.size)
	for r := l.first; r != nil; r = r.next {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.ID, b.ID) })
	return records
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
}
