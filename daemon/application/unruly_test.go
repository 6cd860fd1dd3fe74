package application_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// unruly is a world in which anything may happen in any order.
type unruly struct {
	*world
	t        *rapid.T
	referee  *referee
	late     []application.Event // answers that have not come yet
	old      []application.Event // events that may come again
	sessions []told              // attachments, for messages of any session
	tasks    int
}

func newUnruly(t *rapid.T) *unruly {
	cfg := plainConfig()
	cfg.Profiles = append(cfg.Profiles, application.Profile{
		ID: 1, Name: "big", Slots: 3, Max: 4, Min: 1, BatchSize: 3, MaxPending: 2, IdleTimeout: time.Second, CreationTimeout: time.Minute, ReleaseIdle: 5 * time.Second,
		Dynamic: application.Dynamic{Enabled: rapid.Bool().Draw(t, "dynamic"), Backlog: time.Second, Sustained: time.Second, Ratio: 1},
	})
	cfg.Grants = guard.Grants{Kill: rapid.Bool().Draw(t, "kill"), DrainBusy: rapid.Bool().Draw(t, "drain busy")}
	cfg.Mode = rapid.SampledFrom([]application.Mode{application.Follow, application.Scale}).Draw(t, "mode")
	cfg.MaxQueued, cfg.RetainTasks, cfg.Resync, cfg.SessionTimeout = 50, 1000, 5*time.Minute, 100*time.Second
	u := &unruly{world: newWorld(cfg), t: t, referee: newReferee(t, cfg)}
	u.observe = func(ev application.Event, effects []application.Effect) {
		u.referee.watch(u.now, ev, effects)
		u.checkBounds()
	}
	u.decide = u.anything
	u.slow, u.deletes = true, 0
	u.step(application.WatchTasks{Request: 1, Watch: 1})
	return u
}

// checkBounds holds the fleet, as the application itself shows it, against its bounds.
func (u *unruly) checkBounds() {
	for _, p := range u.cfg.Profiles {
		if got := u.app.Snapshot().Counts(p.ID).Live(); got > p.Max {
			u.t.Fatalf("profile %s has %d live executors, at most %d are allowed", p.Name, got, p.Max)
		}
	}
}

// anything answers as no policy should, late or never.
func (u *unruly) anything(ask application.AskPolicy) (application.Decided, bool) {
	d := application.Decided{Number: ask.Number, Policy: "anything", By: "sha256:anything"}
	for range rapid.IntRange(0, 3).Draw(u.t, "creates") {
		d.Decision.Creates = append(d.Decision.Creates, hostabi.Create{
			Profile: rapid.Uint32Range(0, 2).Draw(u.t, "profile"), Count: rapid.Uint32Range(0, 20).Draw(u.t, "count"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(u.t, "releases") {
		d.Decision.Releases = append(d.Decision.Releases, hostabi.Release{
			Executor: rapid.Uint64Range(0, 20).Draw(u.t, "executor"), Mode: hostabi.ReleaseMode(rapid.IntRange(0, 4).Draw(u.t, "mode")),
		})
	}
	d.Decision.NextCallMS = rapid.SampledFrom([]int64{0, 0, 1, 200, 60_000}).Draw(u.t, "next call")
	if rapid.IntRange(0, 3).Draw(u.t, "late") > 0 {
		return d, true
	}
	u.late = append(u.late, d)
	return d, false
}

// carryLate makes the answers to what was asked for: now, later, or never.
func (u *unruly) carryLate() {
	for _, effect := range u.take() {
		switch e := effect.(type) {
		case application.CreatePod:
			if rapid.IntRange(0, 5).Draw(u.t, "create") == 0 {
				u.late = append(u.late, application.PodRefused{Executor: e.Executor, Class: application.RefusedQuota, Text: "full"})
				break
			}
			u.late = append(u.late, application.PodCreated{Executor: e.Executor, UID: uid(e.Executor), Version: u.make(e)})
		case application.DeletePod:
			u.late = append(u.late, u.delete(e))
		}
	}
}

func (u *unruly) make(e application.CreatePod) snapshot.Version {
	u.pods[e.Executor] = &snapshot.Observation{
		ID: e.Executor, Profile: e.Profile, Phase: snapshot.Pending, Name: e.Name, UID: uid(e.Executor), Version: u.next(),
	}
	return u.version
}

// delete does what a cluster does: a pod that is not as it was seen stays.
func (u *unruly) delete(e application.DeletePod) application.PodDeleted {
	p := u.pods[e.Executor]
	out := application.PodDeleted{Executor: e.Executor, Outcome: application.DeleteAccepted}
	switch {
	case p == nil:
	case e.UID != "" && e.UID != p.UID, e.Version != 0 && e.Version != p.Version:
		out.Outcome = application.DeleteChanged
	case rapid.IntRange(0, 9).Draw(u.t, "delete") == 0:
		out.Outcome = application.DeleteFailed
	default:
		p.Phase, p.Deleting, p.Version = snapshot.Terminating, true, u.next()
	}
	return out
}

// do is one thing that happens.
func (u *unruly) do() {
	u.carryLate()
	choices := []func(){
		u.answer, u.answer, u.answer, u.podMoves, u.podMoves, u.podMoves, u.list, u.joins, u.joins, u.breaks, u.reports, u.reports, u.submits,
		u.retargets, u.waits, u.waits, u.again, u.letsGo, u.cancels,
	}
	choices[rapid.IntRange(0, len(choices)-1).Draw(u.t, "what")]()
}

func (u *unruly) happen(ev application.Event) {
	u.old = append(u.old, ev)
	u.step(ev)
}

func (u *unruly) answer() {
	if len(u.late) == 0 {
		return
	}
	i := rapid.IntRange(0, len(u.late)-1).Draw(u.t, "answer")
	if id := subject(u.late[i]); id != 0 { // whoever creates and deletes an executor's pod answers in order
		i = slices.IndexFunc(u.late, func(ev application.Event) bool { return subject(ev) == id })
	}
	ev := u.late[i]
	u.late = slices.Delete(u.late, i, i+1)
	u.happen(ev)
}

// subject is the executor that an answer is about, 0 if it is a decision.
func subject(ev application.Event) snapshot.ID {
	switch ev := ev.(type) {
	case application.PodCreated:
		return ev.Executor
	case application.PodRefused:
		return ev.Executor
	case application.PodDeleted:
		return ev.Executor
	}
	return 0
}

// again tells an old event once more, as after a reconnect. A creation is refused only once.
func (u *unruly) again() {
	if len(u.old) == 0 {
		return
	}
	ev := rapid.SampledFrom(u.old).Draw(u.t, "again")
	switch ev.(type) {
	case application.PodRefused, application.PodCreated, application.PodsListed, application.Submit:
		return
	}
	u.step(ev)
}

// somePod draws a pod that is there.
func (u *unruly) somePod() *snapshot.Observation {
	ids := slices.Sorted(maps.Keys(u.pods))
	if len(ids) == 0 {
		return nil
	}
	return u.pods[rapid.SampledFrom(ids).Draw(u.t, "pod")]
}

func (u *unruly) podMoves() {
	p := u.somePod()
	if p == nil {
		return
	}
	p.Version = u.next()
	switch {
	case p.Phase.Terminal():
		p.Phase = snapshot.Deleted
		delete(u.pods, p.ID)
	case p.Phase == snapshot.Terminating:
		p.Phase = rapid.SampledFrom([]snapshot.Phase{snapshot.Failed, snapshot.Succeeded, snapshot.Deleted}).Draw(u.t, "end")
	case p.Phase == snapshot.Pending:
		p.Phase = rapid.SampledFrom([]snapshot.Phase{snapshot.Running, snapshot.Running, snapshot.Pending, snapshot.Failed}).Draw(u.t, "phase")
	default:
		p.Phase = rapid.SampledFrom([]snapshot.Phase{snapshot.Running, snapshot.Running, snapshot.Running, snapshot.Failed, snapshot.Terminating}).Draw(u.t, "phase")
	}
	if p.Phase == snapshot.Deleted {
		delete(u.pods, p.ID)
	}
	if rapid.IntRange(0, 4).Draw(u.t, "lost event") > 0 {
		u.happen(application.PodObserved{Pod: *p})
	}
}

func (u *unruly) joins() {
	p := u.somePod()
	if p == nil || p.Phase.Terminal() {
		return
	}
	u.session++
	ev := application.Attached{Executor: p.ID, Session: u.session, UID: p.UID, Slots: rapid.Uint32Range(0, 4).Draw(u.t, "slots")}
	for range rapid.IntRange(0, 2).Draw(u.t, "holds") {
		ev.Holds = append(ev.Holds, u.ref())
	}
	u.sessions = append(u.sessions, told{event: ev})
	u.happen(ev)
}

func (u *unruly) ref() task.Ref {
	return task.Ref{Task: task.ID(rapid.IntRange(1, u.tasks+1).Draw(u.t, "task")), Attempt: rapid.Uint32Range(1, 3).Draw(u.t, "attempt")}
}

// someSession draws an attachment, the newest ones more often.
func (u *unruly) someSession() (application.Attached, bool) {
	if len(u.sessions) == 0 {
		return application.Attached{}, false
	}
	from := max(0, len(u.sessions)-rapid.IntRange(1, 8).Draw(u.t, "how old"))
	ev, ok := u.sessions[rapid.IntRange(from, len(u.sessions)-1).Draw(u.t, "session")].event.(application.Attached)
	return ev, ok
}

func (u *unruly) breaks() {
	if s, ok := u.someSession(); ok {
		u.happen(application.Detached{Executor: s.Executor, Session: s.Session, Text: "broken", Leaving: rapid.IntRange(0, 5).Draw(u.t, "leaving") == 0})
	}
}

func (u *unruly) reports() {
	s, ok := u.someSession()
	if !ok {
		return
	}
	ev := application.Reported{Executor: s.Executor, Session: s.Session}
	for range rapid.IntRange(0, 4).Draw(u.t, "reports") {
		ev.Reports = append(ev.Reports, task.Report{Ref: u.ref(), Outcome: task.Outcome(rapid.IntRange(1, 7).Draw(u.t, "outcome"))})
	}
	u.happen(ev)
}

func (u *unruly) submits() {
	ev := application.Submit{Request: 2}
	for range rapid.IntRange(1, 8).Draw(u.t, "tasks") {
		u.tasks++
		ev.Tasks = append(ev.Tasks, &task.Spec{
			Key: "k" + strconv.Itoa(u.tasks), Command: []string{"true"}, Profile: snapshot.Profile(rapid.IntRange(0, 1).Draw(u.t, "profile")),
			Deadline: rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute, 10 * time.Minute}).Draw(u.t, "deadline"),
		})
	}
	u.happen(ev)
}

func (u *unruly) retargets() {
	u.happen(application.SetTargets{Request: 3, Targets: []snapshot.Target{
		{Profile: snapshot.Profile(rapid.IntRange(0, 1).Draw(u.t, "profile")), Count: rapid.Uint32Range(0, 12).Draw(u.t, "target")},
	}})
}

func (u *unruly) waits() {
	u.advance(rapid.SampledFrom([]time.Duration{50 * time.Millisecond, time.Second, 12 * time.Second, 2 * time.Minute}).Draw(u.t, "wait"))
}

func (u *unruly) letsGo() {
	if p := u.somePod(); p != nil {
		u.happen(application.ReleaseExecutors{Request: 4, Executors: []snapshot.ID{p.ID}, Kill: rapid.Bool().Draw(u.t, "kill")})
	}
}

func (u *unruly) cancels() {
	u.happen(application.Cancel{Request: 5, Keys: []string{"k" + strconv.Itoa(rapid.IntRange(1, u.tasks+1).Draw(u.t, "task"))}})
}
