package application

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

func (a *Application) podObserved(o *snapshot.Observation) {
	if lifeOf(&a.cfg, o) == foreignLife {
		return
	}
	a.alloc.Saw(o.ID)
	if c, ok := a.store.Observe(a.now, *o); ok {
		a.changeOf(c)
	}
	a.removeSurplus(o)
}

func (a *Application) podsListed(ev PodsListed) {
	pods := make([]snapshot.Observation, 0, len(ev.Pods))
	for i := range ev.Pods {
		if lifeOf(&a.cfg, &ev.Pods[i]) != foreignLife {
			pods = append(pods, ev.Pods[i])
			a.alloc.Saw(ev.Pods[i].ID)
		}
	}
	a.foreignListed(ev.Foreign)
	for _, c := range a.store.Replace(a.now, ev.Version, pods) {
		a.changeOf(c)
	}
	for i := range pods {
		a.removeSurplus(&pods[i])
	}
	a.listed = true
}

// removeSurplus deletes a pod that should not be there.
func (a *Application) removeSurplus(o *snapshot.Observation) {
	if !a.store.Surplus(o) {
		return
	}
	why, text := DeleteSurplus, "it is not wanted any more, or never was"
	if o.Phase.Terminal() {
		why, text = DeleteEnded, "it ended while nobody here knew it"
	}
	a.emit(DeletePod{Executor: o.ID, Name: o.Name, UID: o.UID, Grace: -1, Why: why, Text: text})
}

// changeOf follows a change that the cluster showed.
func (a *Application) changeOf(c snapshot.Change) {
	e := &c.After
	if c.Adopted {
		a.adopt(e)
	}
	if e.Live() {
		a.checkUID(e)
		a.refresh(e.ID)
		if e.Phase == snapshot.Running && c.Before.Phase != snapshot.Running {
			a.expectRegistration(e)
		}
		if c.Adopted || c.Before.Phase != e.Phase || c.Before.Wait != e.Wait {
			a.note(hostabi.TriggerPods, false)
		}
		return
	}
	if c.Before.Live() {
		a.executorEnded(e, lifecycle.Classify(*e, a.hasWorked(e.ID)))
	}
	if e.Gone {
		a.forget(e.ID)
		return
	}
	if !e.Deleting { // somebody was faster: one who asks again changes nothing
		a.remove(e.ID, removal{why: DeleteEnded, grace: -1, text: "it has ended"})
	}
}

// adopt takes in an executor of this daemon's that nobody here knew: of the life before a restart, as a rule.
func (a *Application) adopt(e *snapshot.Executor) {
	switch {
	case a.stopped && !a.keep:
		a.condemn(e.ID, removal{why: DeleteStopped, grace: -1, text: "the application has stopped"})
	case lifeOf(&a.cfg, &snapshot.Observation{ID: e.ID, Name: e.Name}) == otherLife:
		a.condemn(e.ID, removal{why: DeleteSurplus, grace: -1, text: "it belongs to another life of the application"})
	}
}

// checkUID refuses a session that turns out to come from another pod than the executor's.
func (a *Application) checkUID(e *snapshot.Executor) {
	s, other := a.roster.Vouch(e.ID, e.UID)
	if !other {
		return
	}
	text := fmt.Sprintf("executor %d lives in the pod with uid %s, not in %s", e.ID, e.UID, s.UID)
	a.emit(Refuse{Executor: e.ID, Session: s.Session, Text: text})
	a.tell(NoticeRegistrationMissed, e.ID, text)
	a.requeue(e.ID, task.Loss{Text: text})
}

// executorEnded is the one place where the end of an executor is taken note of. Its pod may still be there.
func (a *Application) executorEnded(e *snapshot.Executor, ending lifecycle.Ending) {
	if s, registered := a.roster.Remove(e.ID); registered && !s.Away {
		a.emit(EndSession{Executor: e.ID, Session: s.Session, Text: ending.Text})
	}
	a.requeue(e.ID, task.Loss{Text: ending.Text, Blameful: ending.Blameful})
	a.refresh(e.ID)
	a.tell(noticeOf(ending.Class), e.ID, ending.Text)
	a.note(hostabi.TriggerPods, true)
	k := a.kind(e.Profile)
	if k == nil {
		return
	}
	k.failures.add(a.now, ending.Class)
	if !ending.Startup {
		k.backoff.Withdrawn(e.ID)
		return
	}
	if k.backoff.Failed(a.now, e.ID) {
		a.tell(NoticeBackoff, 0, k.backoff.Describe(a.now))
	}
}

// requeue takes an executor's tasks from it: they wait again, or have ended.
func (a *Application) requeue(id snapshot.ID, loss task.Loss) {
	a.tasksChanged(a.book.ExecutorLost(a.now, id, loss))
}

func (a *Application) hasWorked(id snapshot.ID) bool {
	_, ok := a.worked[id]
	return ok
}

// forget drops an executor of which nothing is left.
func (a *Application) forget(id snapshot.ID) {
	if e, ok := a.store.Executor(id); ok {
		if k := a.kind(e.Profile); k != nil {
			k.setFree(id, false)
			k.backoff.Withdrawn(id)
		}
	}
	a.store.Forget(id)
	a.cleaner.Gone(id)
	delete(a.worked, id)
	delete(a.removals, id)
	delete(a.patience, id)
}

func (a *Application) podCreated(ev PodCreated) {
	e, ok := a.store.Executor(ev.Executor)
	if !ok { // given up and forgotten before the answer came
		a.emit(DeletePod{
			Executor: ev.Executor, Name: nameOf(&a.cfg, ev.Executor), UID: ev.UID, Grace: -1, Why: DeleteSurplus,
			Text: "it was given up before it was made",
		})
		return
	}
	a.store.Created(ev.Executor, ev.UID, ev.Version)
	if k := a.kind(e.Profile); k != nil {
		k.refusal = 0
	}
	if e, ok = a.store.Executor(ev.Executor); ok && e.Live() {
		a.checkUID(&e)
	}
}

func (a *Application) podRefused(ev PodRefused) {
	before, _ := a.store.Executor(ev.Executor)
	given, ok := a.store.Lose(a.now, ev.Executor)
	switch {
	case before.Phase == snapshot.Lost: // it was given up already, and now it is known that it never was
		a.forget(ev.Executor)
		return
	case !ok:
		return
	case before.Condemned:
		a.executorEnded(&given.After, lifecycle.Ending{Class: lifecycle.Released, Text: fmt.Sprintf("executor %d was let go before it was made", ev.Executor)})
	default:
		if k := a.kind(before.Profile); k != nil {
			k.refusal = ev.Class
		}
		a.executorEnded(&given.After, lifecycle.NotCreated(ev.Executor, classOf(ev.Class), ev.Text))
	}
	a.forget(ev.Executor)
}

// unclassified is the class of an end that none of the others names.
const unclassified = lifecycle.Class(0)

func classOf(c RefusalClass) lifecycle.Class {
	switch c {
	case RefusedInvalid:
		return lifecycle.Invalid
	case RefusedQuota:
		return lifecycle.Quota
	case RefusedAdmission:
		return lifecycle.Admission
	case RefusedForbidden:
		return lifecycle.Forbidden
	case RefusedTaken:
		return lifecycle.Taken
	case RefusedOther:
	}
	return unclassified
}

func noticeOf(class lifecycle.Class) NoticeKind {
	switch class {
	case lifecycle.Unseen:
		return NoticeCreationTimeout
	case lifecycle.NodeLost, lifecycle.Disruption, lifecycle.Deleted:
		return NoticeExecutorLost
	case unclassified, lifecycle.Invalid, lifecycle.Quota, lifecycle.Admission, lifecycle.Forbidden, lifecycle.Taken:
		return NoticeCreateRefused
	case lifecycle.Finished, lifecycle.Released, lifecycle.Application, lifecycle.OutOfMemory, lifecycle.Image:
	}
	return NoticeExecutorEnded
}

// giveUp loses the requests that nobody has seen in time.
func (a *Application) giveUp() {
	for _, id := range a.unseen.due(a.now, a.isUnseen) {
		if c, ok := a.store.Lose(a.now, id); ok {
			a.executorEnded(&c.After, lifecycle.Classify(c.After, false))
			a.remove(id, removal{why: DeleteTimedOut, grace: -1, text: "nobody saw it in time"})
		}
	}
}

// isUnseen reports whether a request may still be given up: no list or watch has shown it, and it has not registered.
func (a *Application) isUnseen(d deadline) bool {
	e, ok := a.store.Executor(d.id)
	return ok && e.Unseen() && !e.Load.Registered
}

// life is whose pod a pod is, by its name.
type life uint8

const (
	ownLife     life = 1
	otherLife   life = 2 // of this application: an earlier one, or, if the state was set back, one that is not counted any more
	foreignLife life = 3 // not of this application
)

// lifeOf tells lives apart. A pod whose name nobody said is taken for ours.
func lifeOf(cfg *Config, o *snapshot.Observation) life {
	if o.Name == "" || o.Name == nameOf(cfg, o.ID) {
		return ownLife
	}
	rest, ours := strings.CutPrefix(o.Name, cfg.ID+"-i")
	number, ours2 := strings.CutSuffix(rest, "-exec-"+strconv.FormatUint(uint64(o.ID), 10))
	if _, err := strconv.ParseUint(number, 10, 32); !ours || !ours2 || err != nil {
		return foreignLife
	}
	return otherLife
}

// nameOf is the name of an executor's pod. It is never used twice.
func nameOf(cfg *Config, id snapshot.ID) string {
	return cfg.ID + "-i" + strconv.FormatUint(uint64(cfg.Incarnation), 10) + "-exec-" + strconv.FormatUint(uint64(id), 10)
}
