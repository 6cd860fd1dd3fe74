package application_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// told is one event and when it came, so that a history can be told again.
type told struct {
	now   snapshot.Instant
	event application.Event
}

// referee watches an application from outside and knows only what it was told and what it asked for.
type referee struct {
	t       *rapid.T
	cfg     application.Config
	history []told
	answers [][]application.Effect
	asked   map[snapshot.ID]application.CreatePod
	exists  map[snapshot.ID]snapshot.Version // executors that count: asked for and not known to be gone; since which version, 0 until known
	ended   map[task.ID]task.State           // tasks that a watch has shown to have ended
	number  uint64                           // of the newest question
	stopped bool
	over    bool
}

func newReferee(t *rapid.T, cfg application.Config) *referee {
	return &referee{
		t: t, cfg: cfg, asked: map[snapshot.ID]application.CreatePod{}, exists: map[snapshot.ID]snapshot.Version{},
		ended: map[task.ID]task.State{},
	}
}

func (r *referee) watch(now snapshot.Instant, ev application.Event, effects []application.Effect) {
	r.history = append(r.history, told{now, ev})
	r.answers = append(r.answers, effects)
	r.hear(ev)
	for _, effect := range effects {
		r.judge(effect)
	}
	r.judgeFleet()
}

// hear takes down what the world has told about pods. An executor is gone if it was seen to have ended, was refused, or a list as new as its
// creation lacks it.
func (r *referee) hear(ev application.Event) {
	switch ev := ev.(type) {
	case application.PodObserved:
		r.seen(&ev.Pod)
	case application.PodsListed:
		shown := map[snapshot.ID]bool{}
		for i := range ev.Pods {
			r.seen(&ev.Pods[i])
			shown[ev.Pods[i].ID] = true
		}
		for id, born := range r.exists {
			if !shown[id] && born != 0 && born <= ev.Version {
				delete(r.exists, id)
			}
		}
	case application.PodCreated:
		if _, counts := r.exists[ev.Executor]; counts {
			r.exists[ev.Executor] = ev.Version
		}
	case application.PodRefused:
		delete(r.exists, ev.Executor)
	case application.Stop:
		r.stopped = true
	}
}

func (r *referee) seen(o *snapshot.Observation) {
	born, counts := r.exists[o.ID]
	switch {
	case o.Phase.Terminal():
		delete(r.exists, o.ID)
	case counts && born == 0:
		r.exists[o.ID] = o.Version
	}
}

func (r *referee) judge(effect application.Effect) {
	switch e := effect.(type) {
	case application.CreatePod:
		r.judgeCreate(e)
	case application.DeletePod:
		if e.Why == application.DeleteTimedOut { // given up: from now on it does not count, wherever it is
			delete(r.exists, e.Executor)
		}
	case application.AskPolicy:
		if e.Number <= r.number {
			r.t.Fatalf("question %d after question %d", e.Number, r.number)
		}
		r.number = e.Number
	case application.TasksChanged:
		for _, info := range e.Tasks {
			if state, ended := r.ended[info.ID]; ended {
				r.t.Fatalf("task %d is %v after it was %v", info.ID, info.State, state)
			}
			if info.State.Terminal() {
				r.ended[info.ID] = info.State
			}
		}
	case application.Ended:
		if !r.stopped || r.over {
			r.t.Fatalf("ended: stopped=%t, ended before=%t", r.stopped, r.over)
		}
		r.over = true
	}
}

func (r *referee) judgeCreate(e application.CreatePod) {
	if _, twice := r.asked[e.Executor]; twice {
		r.t.Fatalf("executor %d is created, and its number was used before", e.Executor)
	}
	if r.stopped {
		r.t.Fatalf("executor %d is created after the stop", e.Executor)
	}
	r.asked[e.Executor] = e
	r.exists[e.Executor] = 0
}

// judgeFleet holds what exists, as far as anybody could know, against the maximum.
func (r *referee) judgeFleet() {
	live := map[snapshot.Profile]uint32{}
	for id := range r.exists {
		live[r.asked[id].Profile]++
	}
	for _, p := range r.cfg.Profiles {
		if live[p.ID] > p.Max {
			r.t.Fatalf("profile %s has %d executors that may be live, at most %d are allowed", p.Name, live[p.ID], p.Max)
		}
	}
}

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
	cfg.MaxQueued, cfg.RetainTasks, cfg.Resync = 50, 1000, 10*time.Second
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
	d.Decision.NextCallMS = rapid.Int64Range(0, 5000).Draw(u.t, "next call")
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
		ID: e.Executor, Profile: e.Profile, Phase: snapshot.Pending, Name: e.Name, UID: uid(e.Executor), Version: u.next(), Intent: "ours",
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

// Whatever happens, and whatever a policy answers, the promises hold: never more than the maximum are live, no number is used twice, questions
// are numbered upwards, no task changes after its end, and a stopped application creates nothing and ends once.
func TestNothingBreaksThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 120).Draw(t, "events") {
			u.do()
		}
		if rapid.Bool().Draw(t, "stop") {
			u.step(application.Stop{Request: 9, KeepExecutors: rapid.Bool().Draw(t, "keep")})
			for range 20 {
				u.do()
			}
		}
	})
}

// The same events give the same effects.
func TestStepIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 80).Draw(t, "events") {
			u.do()
		}
		again := application.New(u.cfg)
		for i, h := range u.referee.history {
			effects := again.Step(h.now, h.event)
			if diff := cmp.Diff(plain(u.referee.answers[i]), plain(effects)); diff != "" {
				t.Fatalf("event %d (%T) was answered differently the second time (-first +second):\n%s", i+1, h.event, diff)
			}
		}
	})
}

// plain makes effects comparable by what is in them: a snapshot is what it lists.
func plain(effects []application.Effect) []string {
	lines := make([]string, len(effects))
	for i, effect := range effects {
		ask, ok := effect.(application.AskPolicy)
		if !ok {
			lines[i] = fmt.Sprintf("%T %+v", effect, effect)
			continue
		}
		var v hostabi.View
		ask.Input.View(&v)
		lines[i] = fmt.Sprintf("ask %d %t %x", ask.Number, ask.Builtin, v.Encode(nil, hostabi.Projection{}))
	}
	return lines
}

// When faults stop and targets rest, the fleet comes to its targets, every task ends, and then nothing is created, deleted or sent any more.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 100).Draw(t, "events") {
			u.do()
		}
		u.calm()
		for range 250 { // deletions that were refused are tried again after half an hour at the latest
			u.politely()
			u.advance(10 * time.Second)
		}
		u.take()
		for _, p := range u.cfg.Profiles {
			c, want := u.app.Snapshot().Counts(p.ID), u.wanted(p)
			if c.Registered < want || c.Staying() < want {
				t.Errorf("profile %s: %d registered, %d stay, want %d", p.Name, c.Registered, c.Staying(), want)
			}
		}
		counts := u.app.Status(u.now).Tasks
		if counts.Queued+counts.Launched+counts.Running > 0 {
			t.Errorf("not all tasks have ended: %+v", counts)
		}
		if ended := counts.Succeeded + counts.Failed + counts.Cancelled + counts.Expired; ended != counts.Accepted || ended != uint64(len(u.referee.ended)) {
			t.Errorf("%d accepted, %d ended, %d seen to end by the watch", counts.Accepted, ended, len(u.referee.ended))
		}
		u.politely()
		for range 100 {
			u.advance(time.Second)
			u.beats()
		}
		for _, effect := range u.take() {
			switch effect.(type) {
			case application.SetTimer, application.AskPolicy:
			default:
				t.Errorf("the fleet has settled and yet: %T %+v", effect, effect)
			}
		}
	})
}

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
	if n := u.app.Status(u.now).Tasks; n.Queued > 0 { // somebody must do the work
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
