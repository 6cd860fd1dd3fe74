package application_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
)

// t0 is when worlds begin: not 0, which means "no timer".
const t0 = snapshot.Instant(time.Second)

// decider answers questions as a policy does. It reports false to stay silent.
type decider func(application.AskPolicy) (application.Decided, bool)

// world is what stands around an application in a test: a cluster, executors, a policy and a clock, all of which do as they are told.
type world struct {
	app       *application.Application
	cfg       application.Config
	now       snapshot.Instant
	timers    map[application.Timer]snapshot.Instant
	pods      map[snapshot.ID]*snapshot.Observation
	foreign   []application.ForeignPod // others' pods, as a list shows them
	version   snapshot.Version
	session   uint64
	sessionOf map[snapshot.ID]uint64 // the newest of each executor
	request   uint64
	decide    decider

	slow    bool                     // creations are not answered
	refuse  application.RefusalClass // creations are refused
	deletes application.DeleteOutcome

	queue   []application.Event
	effects []application.Effect // all since the last take
	observe func(application.Event, []application.Effect)
}

func newWorld(cfg application.Config) *world {
	return &world{
		app: application.New(cfg), cfg: cfg, now: t0, timers: map[application.Timer]snapshot.Instant{}, pods: map[snapshot.ID]*snapshot.Observation{},
		sessionOf: map[snapshot.ID]uint64{}, deletes: application.DeleteAccepted, decide: asked(nativeDirect(), "direct", "sha256:direct"),
	}
}

// plainConfig is an application with one profile and round numbers.
func plainConfig() application.Config {
	return application.Config{
		ID: "app", Namespace: "default", Incarnation: 1, Mode: application.Follow,
		Profiles: []application.Profile{{
			ID: 0, Name: "default", Slots: 2, Max: 10, BatchSize: 5, IdleTimeout: 10 * time.Second, CreationTimeout: 10 * time.Minute,
		}},
		Batch: 100 * time.Millisecond, Resync: time.Hour, DecisionDeadline: time.Second,
		MaxTaskAttempts: 3, MaxQueued: 1000, RetainTasks: 1000, RetainBytes: 1 << 20,
		SessionTimeout: 30 * time.Second, ReattachGrace: 10 * time.Second, ReturnTimeout: 150 * time.Second,
		Failures: application.FailureBudget{Threshold: 2, Window: 10 * time.Minute, Initial: 10 * time.Second, Max: 2 * time.Minute},
	}
}

func nativeDirect() *sdk.NativePolicy {
	p, err := sdk.Native(&direct.Policy{}, nil)
	if err != nil {
		panic(err) // there are no settings to be wrong
	}
	return p
}

// asked is a decider that asks a policy.
func asked(p *sdk.NativePolicy, name, by string) decider {
	var view hostabi.View
	return func(ask application.AskPolicy) (application.Decided, bool) {
		ask.Input.View(&view, hostabi.Projection{})
		d := application.Decided{Number: ask.Number, Policy: name, By: by}
		answer, err := p.Call(ask.Input.Hook, view.Encode(nil, hostabi.Projection{}))
		if err == nil {
			d.Decision, err = hostabi.DecodeDecision(answer)
		}
		if err != nil {
			d.Fault = err.Error()
		}
		return d, true
	}
}

// step tells the application one event, and then all answers that it sets off.
func (w *world) step(ev application.Event) {
	w.queue = append(w.queue, ev)
	for len(w.queue) > 0 {
		ev := w.queue[0]
		w.queue = w.queue[1:]
		effects := w.app.Step(w.now, ev)
		if w.observe != nil {
			w.observe(ev, effects)
		}
		w.effects = append(w.effects, effects...)
		for _, e := range effects {
			w.carry(e)
		}
	}
}

func (w *world) carry(effect application.Effect) {
	switch e := effect.(type) {
	case application.SetTimer:
		if w.timers[e.Timer] = e.At; e.At == 0 {
			delete(w.timers, e.Timer)
		}
	case application.AskPolicy:
		if d, ok := w.decide(e); ok {
			w.queue = append(w.queue, d)
		}
	case application.CreatePod:
		w.answerCreate(e)
	case application.DeletePod:
		if w.deletes != 0 {
			w.queue = append(w.queue, application.PodDeleted{Executor: e.Executor, Outcome: w.deletes, Text: "because the story says so"})
		}
	}
}

func (w *world) answerCreate(e application.CreatePod) {
	switch {
	case w.slow:
	case w.refuse != 0:
		w.queue = append(w.queue, application.PodRefused{Executor: e.Executor, Class: w.refuse, Text: "because the story says so"})
	default:
		w.queue = append(w.queue, application.PodCreated{Executor: e.Executor, UID: uid(e.Executor), Version: w.next()})
		w.pods[e.Executor] = &snapshot.Observation{
			ID: e.Executor, Profile: e.Profile, Phase: snapshot.Pending, Name: e.Name, UID: uid(e.Executor), Version: w.version,
		}
	}
}

func uid(id snapshot.ID) string { return "uid-" + strconv.FormatUint(uint64(id), 10) }

func (w *world) next() snapshot.Version {
	w.version++
	return w.version
}

// take returns what the application asked for since the last time.
func (w *world) take() []application.Effect {
	effects := w.effects
	w.effects = nil
	return effects
}

// list shows all pods.
func (w *world) list() {
	ev := application.PodsListed{Version: w.next(), Foreign: w.foreign}
	for _, p := range w.pods {
		if p.Phase != snapshot.Deleted {
			ev.Pods = append(ev.Pods, *p)
		}
	}
	slices.SortFunc(ev.Pods, func(a, b snapshot.Observation) int { return int(a.ID) - int(b.ID) })
	w.step(ev)
}

// show changes a pod and lets the application see it.
func (w *world) show(id snapshot.ID, phase snapshot.Phase, change func(*snapshot.Observation)) {
	p := w.pods[id]
	if p == nil {
		p = &snapshot.Observation{ID: id, UID: uid(id), Name: fmt.Sprintf("app-i1-exec-%d", id)}
		w.pods[id] = p
	}
	p.Phase, p.Version = phase, w.next()
	if change != nil {
		change(p)
	}
	o := *p
	if phase == snapshot.Deleted {
		delete(w.pods, id)
	}
	w.step(application.PodObserved{Pod: o})
}

// attach registers an executor on a new session.
func (w *world) attach(id snapshot.ID, holds ...task.Ref) {
	w.session++
	w.sessionOf[id] = w.session
	w.step(application.Attached{Executor: id, Session: w.session, UID: uid(id), Holds: holds})
}

// start makes a pod run and register.
func (w *world) start(id snapshot.ID) {
	w.show(id, snapshot.Running, nil)
	w.attach(id)
}

func (w *world) target(n uint32) {
	w.request++
	w.step(application.SetTargets{Request: w.request, Targets: []snapshot.Target{{Profile: 0, Count: n}}})
}

// submit brings tasks with keys made of a prefix and a number.
func (w *world) submit(prefix, job string, n int, deadline time.Duration) {
	w.request++
	ev := application.Submit{Request: w.request}
	for i := range n {
		ev.Tasks = append(ev.Tasks, &task.Spec{Key: prefix + strconv.Itoa(i+1), Job: job, Command: []string{"true"}, Deadline: deadline})
	}
	w.step(ev)
}

// advance lets time pass, and fires the timers on the way, the earliest first.
func (w *world) advance(d time.Duration) {
	end := w.now.Add(d)
	for {
		timer, at := w.nextTimer()
		if timer == 0 || at > end {
			break
		}
		w.now = max(w.now, at)
		delete(w.timers, timer)
		w.step(application.TimerFired{Timer: timer})
	}
	w.now = end
}

func (w *world) nextTimer() (application.Timer, snapshot.Instant) {
	first, at := application.Timer(0), snapshot.Instant(math.MaxInt64)
	for timer := application.TimerAsk; timer <= application.TimerRetry; timer++ {
		if due, set := w.timers[timer]; set && due < at {
			first, at = timer, due
		}
	}
	return first, at
}

var errScript = errors.New("the story is not well written")
