package application

import (
	"cmp"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// deletionRetry is how often a deletion is asked for again while the pod is still there. The actuator tries again by itself, much sooner: this
// is for what was accepted and did not happen, or was refused for good and may be allowed later.
var deletionRetry = lifecycle.Retry{Interval: time.Minute, Max: 30 * time.Minute}

// stopPatience is how long an executor that was told to stop may take before its pod is deleted.
const stopPatience = 30 * time.Second

// removal is a pod that is to be deleted.
type removal struct {
	why    DeleteReason
	grace  time.Duration
	text   string
	strict bool // only as long as it is as it was seen: it had not started
}

// remove asks for an executor's pod to go, from now on until it is gone. The first reason stays.
func (a *Application) remove(id snapshot.ID, r removal) {
	if _, ok := a.removals[id]; ok {
		return
	}
	a.removals[id] = r
	a.cleaner.Add(a.now, id)
}

// condemn orders an executor's end. It reports false if that was ordered before, or there is nothing to end.
func (a *Application) condemn(id snapshot.ID, r removal) bool {
	if !a.store.Condemn(a.now, id) {
		return false
	}
	a.refresh(id)
	a.remove(id, r)
	return true
}

// clean emits the deletions that are due: of one reason together, of those one profile's together, ascending by executor.
func (a *Application) clean() {
	due := a.cleaner.Due(a.now)
	if len(due) == 0 {
		return
	}
	type target struct {
		executor snapshot.Executor
		removal  removal
	}
	targets := make([]target, 0, len(due))
	for _, id := range due {
		e, _ := a.store.Executor(id)
		targets = append(targets, target{e, a.removals[id]})
	}
	slices.SortStableFunc(targets, func(x, y target) int {
		return cmp.Or(cmp.Compare(x.removal.why, y.removal.why), cmp.Compare(x.executor.Profile, y.executor.Profile))
	})
	for _, t := range targets {
		d := DeletePod{
			Executor: t.executor.ID, Name: t.executor.Name, UID: t.executor.UID, Grace: t.removal.grace, Why: t.removal.why, Text: t.removal.text,
		}
		if t.removal.strict {
			d.Version = max(t.executor.Version, t.executor.Born)
		}
		a.emit(d)
	}
}

func (a *Application) podDeleted(ev PodDeleted) {
	e, ok := a.store.Executor(ev.Executor)
	if !ok || ev.Name != "" && ev.Name != e.Name {
		return
	}
	r := a.removals[ev.Executor]
	switch ev.Outcome {
	case DeleteAccepted:
		if e.Phase == snapshot.Lost && e.UID == "" && e.Born == 0 { // no list will ever show that it is gone
			a.forget(e.ID)
		}
	case DeleteChanged:
		if r.strict {
			a.spare(e.ID) // what changed will be seen soon, and then decided on
		}
	case DeleteFailed:
		a.tell(NoticeCannotDelete, e.ID, "deleting the pod of an executor: "+ev.Text)
		if r.strict {
			a.spare(e.ID)
		}
	}
}

// spare takes back the end of an executor whose deletion was refused.
func (a *Application) spare(id snapshot.ID) {
	if !a.store.Spare(a.now, id) {
		return
	}
	a.cleaner.Gone(id)
	delete(a.removals, id)
	a.refresh(id)
	if e, ok := a.store.Executor(id); ok && e.Unseen() {
		a.awaitPod(&e)
	}
}

// release lets an executor go.
func (a *Application) release(id snapshot.ID, mode guard.Mode, text string) {
	e, ok := a.store.Executor(id)
	if !ok {
		return
	}
	_, registered := a.roster.Registered(id)
	switch {
	case mode == guard.Kill:
		a.condemn(id, removal{why: DeleteReleased, grace: 0, text: text})
	case !registered: // there is nothing that it could finish
		a.condemn(id, removal{why: DeleteReleased, grace: -1, text: text, strict: e.Starting()})
	default:
		a.drain(id, mode == guard.DrainWhenIdle, text)
	}
}

// drain lets an executor go when it has finished what it has.
func (a *Application) drain(id snapshot.ID, whenIdle bool, text string) {
	if a.roster.Drain(id, whenIdle) {
		s, _ := a.roster.Registered(id)
		a.emit(DrainExecutor{Executor: id, Session: s.Session, Text: text})
	}
	a.refresh(id)
	a.stopIfIdle(id, text)
}

// stopIfIdle tells a draining executor to stop once it has nothing left.
func (a *Application) stopIfIdle(id snapshot.ID, text string) {
	if a.book.Busy(id) > 0 || !a.roster.Idle(id) {
		return
	}
	s, _ := a.roster.Registered(id)
	a.emit(StopExecutor{Executor: id, Session: s.Session, Text: text})
	a.expect(id, stopPatience)
}

// expect says by when an executor should have ended, or come back. Said again it is the newest that counts.
func (a *Application) expect(id snapshot.ID, within time.Duration) {
	at := a.now.Add(within)
	a.patience[id] = at
	a.stragglers.add(at, id)
}

func (a *Application) isStraggler(d deadline) bool {
	at, ok := a.patience[d.id]
	return ok && at == d.at
}

// endStragglers deletes the pods of executors that did not end, or did not come back, by themselves.
func (a *Application) endStragglers() {
	for _, id := range a.stragglers.due(a.now, a.isStraggler) {
		delete(a.patience, id)
		s, registered := a.roster.Registered(id)
		text := "it was lost and did not come back"
		switch {
		case registered && s.Drain == roster.DrainStopping:
			text = "it did not stop when it was told to"
		case !a.hasWorked(id):
			text = "it runs and has not registered: see its log, and whether it can reach the daemon"
		}
		if a.condemn(id, removal{why: DeleteReleased, grace: -1, text: text}) {
			a.tell(NoticeExecutorLost, id, text)
			a.note(hostabi.TriggerPods, true)
		}
	}
}
