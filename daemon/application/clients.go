package application

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// What a client may ask for at once.
const (
	maxListed  = 10_000 // tasks in one answer to ListTasks
	maxWatches = 4096
)

func (a *Application) reply(request uint64) { a.emit(Reply{Request: request}) }

func (a *Application) refuse(request uint64, code RefusalCode, format string, args ...any) {
	a.emit(Reply{Request: request, Refused: Refusal{Code: code, Text: fmt.Sprintf(format, args...)}})
}

// refuseStopped answers a wish that a stopped application does not follow, and reports whether it is stopped.
func (a *Application) refuseStopped(request uint64) bool {
	if a.stopped {
		a.refuse(request, RefusedStopped, "the application has stopped")
	}
	return a.stopped
}

func (a *Application) setTargets(ev SetTargets) {
	if a.refuseStopped(ev.Request) {
		return
	}
	for _, t := range ev.Targets {
		i, ok := a.cfg.profile(t.Profile)
		if !ok {
			a.refuse(ev.Request, RefusedNotFound, "profile %d: there is none", t.Profile)
			return
		}
		if p := &a.cfg.Profiles[i]; p.Max > 0 && t.Count > p.Max {
			a.refuse(ev.Request, RefusedBadRequest, "profile %s: a target of %d is above its maximum of %d executors", p.Name, t.Count, p.Max)
			return
		}
	}
	for _, t := range ev.Targets {
		a.setTarget(t)
	}
	a.reply(ev.Request)
	a.note(hostabi.TriggerTargets, true)
}

func (a *Application) setTarget(t snapshot.Target) {
	before := a.store.Target(t.Profile)
	if before == t.Count {
		return
	}
	a.store.SetTarget(t)
	i, _ := a.cfg.profile(t.Profile)
	a.tell(NoticeTargetChanged, 0, fmt.Sprintf("profile %s: the target goes from %d to %d", a.cfg.Profiles[i].Name, before, t.Count))
}

func (a *Application) submit(ev Submit) {
	if a.refuseStopped(ev.Request) {
		return
	}
	for i, spec := range ev.Tasks {
		if a.kind(spec.Profile) == nil {
			a.refuse(ev.Request, RefusedBadRequest, "task %d (key %q): profile %d: there is none", i+1, spec.Key, spec.Profile)
			return
		}
	}
	known := task.ID(a.book.Counts().Accepted) // tasks are numbered without gaps
	infos, err := a.book.Submit(a.now, ev.Tasks)
	switch {
	case errors.Is(err, task.ErrFull):
		a.refuse(ev.Request, RefusedFull, "%v", err)
		return
	case errors.Is(err, task.ErrConflict):
		a.refuse(ev.Request, RefusedConflict, "%v", err)
		return
	case err != nil:
		a.refuse(ev.Request, RefusedBadRequest, "%v", err)
		return
	}
	a.emit(Reply{Request: ev.Request, Tasks: infos})
	a.tasksChanged(slices.DeleteFunc(slices.Clone(infos), func(i task.Info) bool { return i.ID <= known }))
}

func (a *Application) cancelTasks(ev Cancel) {
	changed, kills := a.book.Cancel(a.now, ev.Keys, ev.Job)
	a.tasksChanged(changed)
	a.kill(kills)
	a.emit(Reply{Request: ev.Request, Count: uint32(len(changed) + len(kills))})
}

func (a *Application) listTasks(ev ListTasks) {
	limit := min(int(cmp.Or(ev.Limit, maxListed)), maxListed)
	infos := a.book.List(task.Query{Job: ev.Job, Keys: ev.Keys, States: ev.States, After: ev.After, Limit: limit + 1})
	more := len(infos) > limit
	if more {
		infos = infos[:limit]
	}
	a.emit(Reply{Request: ev.Request, Tasks: infos, More: more})
}

func (a *Application) watchTasks(ev WatchTasks) {
	i, there := slices.BinarySearchFunc(a.watches, ev.Watch, func(w watch, id uint64) int { return cmp.Compare(w.id, id) })
	switch {
	case there:
		a.watches[i].job = ev.Job
	case len(a.watches) >= maxWatches:
		a.refuse(ev.Request, RefusedFull, "%d watches are open, and more are not possible; try again when some have ended", maxWatches)
		return
	default:
		a.watches = slices.Insert(a.watches, i, watch{ev.Watch, ev.Job})
	}
	a.emit(Reply{Request: ev.Request, Tasks: a.book.List(task.Query{Job: ev.Job})})
}

func (a *Application) unwatchTasks(id uint64) {
	a.watches = slices.DeleteFunc(a.watches, func(w watch) bool { return w.id == id })
}

func (a *Application) releaseExecutors(ev ReleaseExecutors) {
	for _, id := range ev.Executors {
		if e, ok := a.store.Executor(id); !ok || !e.Live() {
			a.refuse(ev.Request, RefusedNotFound, "executor %d: there is none, or it has ended", id)
			return
		}
	}
	mode := guard.Drain
	if ev.Kill {
		mode = guard.Kill
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ev.Executors))) {
		a.release(id, mode, cmp.Or(ev.Text, "a person let it go"))
	}
	a.reply(ev.Request)
	a.note(hostabi.TriggerPods, true)
}

func (a *Application) configure(ev Configure) {
	if a.refuseStopped(ev.Request) {
		return
	}
	if text := a.immovable(&ev.Config); text != "" {
		a.refuse(ev.Request, RefusedBadRequest, "%s", text)
		return
	}
	old := a.cfg
	a.cfg = ev.Config
	if ev.Config.Mode == old.Mode { // a binding may have changed it since
		a.cfg.Mode = a.alloc.Mode()
	}
	a.alloc.Configure(a.cfg.allocation())
	a.book.SetLimits(a.cfg.tasks())
	a.roster.Configure(a.cfg.sessions())
	a.reconcileProfiles(old.Profiles)
	a.reply(ev.Request)
	a.backlog = true
	a.note(hostabi.TriggerTargets, true)
}

// immovable says what of a configuration may not change and does.
func (a *Application) immovable(cfg *Config) string {
	switch {
	case cfg.ID != a.cfg.ID || cfg.Namespace != a.cfg.Namespace:
		return fmt.Sprintf("an application keeps its name: this one is %s/%s", a.cfg.Namespace, a.cfg.ID)
	case cfg.Incarnation != a.cfg.Incarnation:
		return "an application keeps its incarnation"
	}
	for i := range a.cfg.Profiles {
		old := &a.cfg.Profiles[i]
		if j, ok := cfg.profile(old.ID); !ok || cfg.Profiles[j].Name != old.Name {
			return fmt.Sprintf("profile %s: profiles are neither removed, renamed nor moved; add new ones at the end", old.Name)
		}
	}
	return ""
}

// reconcileProfiles brings what is kept of profiles in line with a changed configuration. A target that the configuration changes is set; one
// that it repeats is not, because clients may have changed it since.
func (a *Application) reconcileProfiles(old []Profile) {
	kinds := make([]*kind, len(a.cfg.Profiles))
	before := Config{Profiles: old}
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		j, known := before.profile(p.ID)
		if !known {
			kinds[i] = newKind(&a.cfg)
			a.introduce(p)
			continue
		}
		kinds[i] = a.kinds[j]
		kinds[i].backoff.Configure(a.cfg.Failures)
		kinds[i].failures.window = a.cfg.Failures.Window
		if p.Target != old[j].Target {
			a.setTarget(snapshot.Target{Profile: p.ID, Count: p.Target})
		}
	}
	a.kinds = kinds
}

// stop ends the application's work. Each step is taken whatever became of the others.
func (a *Application) stop(ev Stop) {
	if first := !a.stopped; first || (a.keep && !ev.KeepExecutors) {
		a.stopped, a.keep = true, ev.KeepExecutors
		a.alloc.Drop()
		a.stopTasks()
		a.stopExecutors()
	}
	a.reply(ev.Request)
}

// stopTasks ends the tasks that wait, and those that run unless their executors are kept.
func (a *Application) stopTasks() {
	if a.keep {
		a.cancelQueued()
		return
	}
	changed, _ := a.book.Cancel(a.now, nil, "")
	a.tasksChanged(changed)
}

// cancelQueued ends the tasks that wait. In a stopped application nobody will run them.
func (a *Application) cancelQueued() {
	if a.book.Counts().Queued == 0 { // to cancel without a key is to cancel all
		return
	}
	var keys []string
	for _, info := range a.book.List(task.Query{States: []task.State{task.Queued}}) {
		keys = append(keys, info.Spec.Key)
	}
	changed, _ := a.book.Cancel(a.now, keys, "")
	a.tasksChanged(changed)
}

func (a *Application) stopExecutors() {
	if !a.keep {
		for s := range a.roster.All() {
			if !s.Away {
				a.emit(StopExecutor{Executor: s.Executor, Session: s.Session, Text: "the application stops"})
			}
		}
	}
	for _, e := range slices.Collect(a.store.All()) {
		a.refresh(e.ID)
		if !a.keep {
			a.condemn(e.ID, removal{why: DeleteStopped, grace: -1, text: "the application stops"})
		}
	}
}

func number(id snapshot.ID) string { return strconv.FormatUint(uint64(id), 10) }
