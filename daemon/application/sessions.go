package application

import (
	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

func (a *Application) attached(ev Attached) {
	known, ok := a.store.Executor(ev.Executor)
	if !ok && !a.listed { // after a restart executors are faster than the first list
		a.emit(EndSession{Executor: ev.Executor, Session: ev.Session, Text: "the cluster has not been listed yet; try again"})
		return
	}
	slots := uint32(0)
	if i, ok := a.cfg.profile(known.Profile); ok {
		slots = a.cfg.Profiles[i].Slots
	}
	hello := roster.Hello{Executor: ev.Executor, Session: ev.Session, UID: ev.UID, Slots: ev.Slots}
	admission := a.roster.Attach(a.now, hello, known, slots)
	switch admission.Verdict {
	case roster.Refused:
		a.emit(Refuse{Executor: ev.Executor, Session: ev.Session, Text: admission.Text})
		a.tell(NoticeRegistrationMissed, ev.Executor, admission.Text)
	case roster.Outdated:
		a.emit(EndSession{Executor: ev.Executor, Session: ev.Session, Text: admission.Text})
	default:
		a.admit(ev, &known, admission)
	}
}

// admit brings an executor in: what it still holds and should, it keeps.
func (a *Application) admit(ev Attached, known *snapshot.Executor, admission roster.Admission) {
	if admission.Superseded != 0 {
		a.emit(EndSession{Executor: ev.Executor, Session: admission.Superseded, Text: "a newer session of the executor replaces it"})
	}
	adoption := a.book.Adopt(a.now, ev.Executor, ev.Holds)
	a.emit(Admit{Executor: ev.Executor, Session: ev.Session, Discard: adoption.Discard})
	a.kill(adoption.Kill)
	if admission.Drain == roster.DrainTold {
		a.emit(DrainExecutor{Executor: ev.Executor, Session: ev.Session, Text: "it was draining before"})
	}
	a.tasksChanged(adoption.Changed)
	delete(a.patience, ev.Executor)
	a.worked[ev.Executor] = struct{}{}
	k := a.kind(known.Profile)
	if k != nil && k.backoff.Started(ev.Executor) {
		a.tell(NoticeBackoff, 0, "over: executor "+number(ev.Executor)+" works")
		a.note(hostabi.TriggerPods, true)
	}
	a.refresh(ev.Executor)
	a.stopIfIdle(ev.Executor, "it has finished what it had")
	a.note(hostabi.TriggerPods, false)
}

func (a *Application) detached(ev Detached) {
	if !a.roster.Current(ev.Executor, ev.Session) {
		return
	}
	a.note(hostabi.TriggerPods, false)
	if !ev.Leaving {
		a.roster.Detach(a.now, ev.Executor, ev.Session)
		a.refresh(ev.Executor)
		return
	}
	a.roster.Remove(ev.Executor)
	a.requeue(ev.Executor, task.Loss{Text: "the executor left"})
	a.refresh(ev.Executor)
	a.expectBack(ev.Executor)
}

// expectBack gives an executor that has lost its session some time to come back. Then its pod is deleted: a process that is stopped, or a node that
// is cut off, would take up a place for ever. The place is free when the pod is gone, or when the cluster gives it up with its node: until then
// nobody can say that it does not run.
func (a *Application) expectBack(id snapshot.ID) {
	e, ok := a.store.Executor(id)
	switch {
	case !ok || !e.Live() || e.Condemned:
	case e.Unseen():
		a.awaitPod(&e)
	default:
		a.expect(id, a.cfg.ReturnTimeout)
	}
}

// expectRegistration gives an executor that has begun to run some time to register, for the same reason: one that cannot find the daemon, or is
// not our program at all, may run for ever.
func (a *Application) expectRegistration(e *snapshot.Executor) {
	if _, registered := a.roster.Registered(e.ID); registered || e.Condemned {
		return
	}
	if i, ok := a.cfg.profile(e.Profile); ok {
		a.expect(e.ID, a.cfg.Profiles[i].CreationTimeout)
	}
}

func (a *Application) beat(ev Beat) {
	if !a.roster.Beat(a.now, ev.Executor, ev.Session) {
		a.emit(EndSession{Executor: ev.Executor, Session: ev.Session, Text: "the session is not the executor's current one"})
		return
	}
	a.load(ev.Executor, func(l *snapshot.Load) {
		l.Memory, l.Disk = max(l.Memory, ev.Memory), ev.Disk
	})
}

func (a *Application) reported(ev Reported) {
	if !a.roster.Beat(a.now, ev.Executor, ev.Session) {
		a.emit(EndSession{Executor: ev.Executor, Session: ev.Session, Text: "the session is not the executor's current one"})
		return
	}
	recorded := a.book.Report(a.now, ev.Executor, ev.Reports)
	if len(recorded.Ack) > 0 {
		a.emit(AckReports{Executor: ev.Executor, Session: ev.Session, Tasks: recorded.Ack})
	}
	a.tasksChanged(recorded.Changed)
	a.load(ev.Executor, func(l *snapshot.Load) {
		for i := range recorded.Changed {
			countTask(l, &recorded.Changed[i])
		}
	})
	a.refresh(ev.Executor)
	a.stopIfIdle(ev.Executor, "it has finished what it had")
}

// countTask adds the end of an attempt to what an executor did. A task that waits again shows its failed attempt, unless it was given back.
func countTask(l *snapshot.Load, info *task.Info) {
	if info.State == task.Running || info.Result.Ref.Attempt != info.Attempt {
		return
	}
	l.TaskTime += info.Result.Took
	if info.Result.Outcome == task.OutcomeSucceeded {
		l.Done++
		return
	}
	l.Failed++
}

func (a *Application) leaving(ev Leaving) {
	if !a.roster.Current(ev.Executor, ev.Session) {
		return
	}
	a.drain(ev.Executor, false, ev.Text)
	a.note(hostabi.TriggerPods, true)
}

// loseSessions gives up the sessions that have been silent, or away, for too long.
func (a *Application) loseSessions() {
	for _, lost := range a.roster.Expire(a.now) {
		if !lost.Away {
			a.emit(EndSession{Executor: lost.Executor, Session: lost.Session.Session, Text: lost.Text})
		}
		if e, ok := a.store.Executor(lost.Executor); ok && !e.Condemned { // that one was told to end did not surprise anybody
			a.tell(NoticeExecutorLost, lost.Executor, lost.Text)
		}
		a.requeue(lost.Executor, task.Loss{Text: lost.Text, Blameful: true})
		a.refresh(lost.Executor)
		a.expectBack(lost.Executor)
		a.note(hostabi.TriggerPods, true)
	}
}

// load changes what is known of an executor's work.
func (a *Application) load(id snapshot.ID, change func(*snapshot.Load)) {
	if e, ok := a.store.Executor(id); ok {
		change(&e.Load)
		a.store.SetLoad(id, e.Load)
	}
}

// refresh brings what the store and the slots know of an executor in line with its session and its tasks.
func (a *Application) refresh(id snapshot.ID) {
	e, ok := a.store.Executor(id)
	if !ok {
		return
	}
	s, registered := a.roster.Registered(id)
	l := e.Load
	idle := l.Registered && l.Busy == 0
	l.Registered, l.Slots = registered && e.Live(), s.Slots
	l.Draining = s.Drain != roster.DrainNone || l.Draining && !registered // one that drained and left did not end by surprise
	l.Busy = a.book.Busy(id)
	if l.Registered && l.Busy == 0 && !idle {
		l.IdleSince = a.now
	}
	a.store.SetLoad(id, l)
	if k := a.kind(e.Profile); k != nil {
		usable := !a.stopped && e.Live() && e.Phase != snapshot.Terminating && a.roster.Usable(id)
		k.setFree(id, usable && l.Busy < l.Slots)
		k.peak = max(k.peak, a.store.Counts(e.Profile).Registered)
	}
}
