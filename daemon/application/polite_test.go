package application_test

import (
	"maps"
	"slices"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// wanted is how many executors the profile is bound to get: its target, clamped.
func (u *unruly) wanted(p application.Profile) uint32 {
	if u.app.Status(u.now).Mode == application.Scale {
		return p.Min
	}
	return min(max(u.app.Snapshot().Target(p.ID), p.Min), p.Max)
}

// calm ends all faults: a good policy decides, and all that is late comes.
func (u *unruly) calm() {
	u.decide = asked(nativeDirect(), "direct", "sha256:direct")
	u.slow, u.deletes = false, application.DeleteAccepted
	u.carryLate()
	for len(u.late) > 0 { // whoever creates and deletes pods answers in the end
		late := u.late
		u.late = nil
		for _, ev := range late {
			u.step(ev)
		}
	}
	u.step(application.PolicyBound{Policy: "direct", By: "sha256:direct", Mode: application.Follow})
	if n := u.app.Status(u.now).Tasks; n.Queued+n.Launched+n.Running > 0 { // somebody must do the work
		u.step(application.SetTargets{Request: 3, Targets: []snapshot.Target{{Profile: 0, Count: 2}, {Profile: 1, Count: 2}}})
	}
}

// politely lets everybody do what is expected: the cluster creates and deletes, pods run, executors register, work and leave.
func (u *unruly) politely() {
	for _, effect := range u.take() {
		switch e := effect.(type) {
		case application.DeletePod:
			if p := u.pods[e.Executor]; p != nil && (e.UID == "" || e.UID == p.UID) {
				delete(u.pods, e.Executor)
			}
		case application.StopExecutor:
			if p := u.pods[e.Executor]; p != nil {
				p.Phase, p.Version = snapshot.Succeeded, u.next()
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(u.pods)) {
		p := u.pods[id]
		if p.Phase == snapshot.Pending {
			p.Phase, p.Version = snapshot.Running, u.next()
		}
		if p.Phase == snapshot.Terminating {
			delete(u.pods, id)
		}
	}
	u.list()
	u.beats()
}

// beats lets every executor that runs say that it lives, register if it has not, and finish what it has.
func (u *unruly) beats() {
	for _, id := range slices.Sorted(maps.Keys(u.pods)) {
		e, known := u.app.Snapshot().Executor(id)
		if !known || e.Phase != snapshot.Running {
			continue
		}
		if !e.Load.Registered || u.sessionOf[id] == 0 || u.outdated(id) {
			u.attach(id)
		}
		ev := application.Reported{Executor: id, Session: u.sessionOf[id]}
		for _, info := range u.held(id) {
			ev.Reports = append(ev.Reports, task.Report{Ref: task.Ref{Task: info.ID, Attempt: info.Attempt}, Outcome: task.OutcomeSucceeded})
		}
		u.step(ev)
	}
}

// outdated reports whether a newer session than the polite one's was opened, by an unruly one.
func (u *unruly) outdated(id snapshot.ID) bool {
	for _, s := range u.sessions {
		if ev, ok := s.event.(application.Attached); ok && ev.Executor == id && ev.Session > u.sessionOf[id] {
			return true
		}
	}
	return false
}

// held lists what an executor was given.
func (u *unruly) held(id snapshot.ID) []task.Info {
	var held []task.Info
	states := []task.State{task.Launched, task.Running}
	for _, effect := range u.app.Step(u.now, application.ListTasks{Request: 8, States: states}) {
		if reply, ok := effect.(application.Reply); ok {
			for _, info := range reply.Tasks {
				if info.Executor == id {
					held = append(held, info)
				}
			}
		}
	}
	return held
}
