package application

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// killText says to an executor why it is to end an attempt, by what the task becomes.
func killText(fate task.State) string {
	if fate == task.Expired {
		return "the task's deadline passed"
	}
	return "the task was cancelled"
}

// watch is a client that is told what becomes of tasks.
type watch struct {
	id  uint64
	job string
}

// tasksChanged notes what became of tasks, for those who watch, and that the backlog is another one.
func (a *Application) tasksChanged(changed []task.Info) {
	if len(changed) == 0 {
		return
	}
	a.backlog = true
	a.queued = a.queued || slices.ContainsFunc(changed, func(i task.Info) bool { return i.State == task.Queued })
	if len(a.watches) > 0 {
		a.changed = append(a.changed, changed...)
	}
}

// tellWatchers tells each watch what became of the tasks that it is about.
func (a *Application) tellWatchers() {
	changed := a.changed
	a.changed = nil
	if len(changed) == 0 {
		return
	}
	for _, w := range a.watches {
		mine := changed
		if w.job != "" {
			mine = slices.DeleteFunc(slices.Clone(changed), func(i task.Info) bool { return i.Spec.Job != w.job })
		}
		if len(mine) > 0 {
			a.emit(TasksChanged{Watch: w.id, Tasks: mine})
		}
	}
}

// assign gives waiting tasks to executors with room, and asks for more executors if there is no room for all.
func (a *Application) assign() {
	if a.stopped {
		a.cancelQueued() // what came back after the stop
		return
	}
	came := a.queued
	a.queued = false
	for i := range a.cfg.Profiles {
		p := a.cfg.Profiles[i].ID
		demand := a.book.Demand(p)
		if demand.Queued == 0 {
			continue
		}
		slots := a.room(p, a.kinds[i].free, demand.Queued)
		for _, given := range a.book.Assign(a.now, slots) {
			a.launch(given)
		}
		if came && a.book.Demand(p).Queued > 0 {
			a.note(hostabi.TriggerDemand, true)
		}
	}
}

// room lists executors that have room for a number of tasks together, or all that have any.
func (a *Application) room(p snapshot.Profile, free []snapshot.ID, tasks uint32) []task.Slot {
	var slots []task.Slot
	for _, id := range free {
		e, _ := a.store.Executor(id)
		n := min(e.Load.Slots-e.Load.Busy, tasks)
		slots = append(slots, task.Slot{Executor: id, Profile: p, Free: n})
		if tasks -= n; tasks == 0 {
			break
		}
	}
	return slots
}

func (a *Application) launch(given task.Assignment) {
	s, _ := a.roster.Registered(given.Executor)
	a.emit(LaunchTasks{Executor: given.Executor, Session: s.Session, Launches: given.Launches})
	a.refresh(given.Executor)
	if len(a.watches) == 0 {
		return
	}
	for _, l := range given.Launches {
		if info, ok := a.book.Info(l.Ref.Task); ok {
			a.changed = append(a.changed, info)
		}
	}
}

// kill tells executors to end attempts. One without a session is told when it comes back.
func (a *Application) kill(kills []task.Kill) {
	kills = slices.Clone(kills)
	slices.SortStableFunc(kills, func(x, y task.Kill) int {
		return cmp.Or(cmp.Compare(x.Executor, y.Executor), cmp.Compare(x.Fate, y.Fate))
	})
	for len(kills) > 0 {
		id, fate := kills[0].Executor, kills[0].Fate
		var refs []task.Ref
		for len(kills) > 0 && kills[0].Executor == id && kills[0].Fate == fate {
			refs = append(refs, kills[0].Ref)
			kills = kills[1:]
		}
		if s, ok := a.roster.Registered(id); ok && !s.Away {
			a.emit(KillTasks{Executor: id, Session: s.Session, Tasks: refs, Text: killText(fate)})
		}
	}
}

// expire ends the tasks whose deadlines are over. It comes before each event: what an event does to tasks depends on when it came, and not on
// which of two timers was quicker.
func (a *Application) expire() {
	if next := a.book.NextDeadline(); next == 0 || next > a.now {
		return
	}
	changed, kills := a.book.Expire(a.now)
	a.tasksChanged(changed)
	a.tellWatchers() // a watch that the event opens is shown these ends in its list, and not again
	a.kill(kills)
}

// ramp lets targets follow the backlog where dynamic allocation is on, and lets the policy know when a backlog is gone.
func (a *Application) ramp() {
	if !a.backlog || a.stopped {
		return
	}
	a.backlog = false
	for i := range a.cfg.Profiles {
		p := a.cfg.Profiles[i].ID
		target, changed := a.alloc.Ramp(a.now, p, a.book.Demand(p), a.store)
		if changed {
			a.store.SetTarget(snapshot.Target{Profile: p, Count: target})
			a.note(hostabi.TriggerTargets, true)
		}
	}
	if c := a.book.Counts(); c.Queued+c.Launched+c.Running == 0 {
		a.note(hostabi.TriggerDemand, false)
	}
}
