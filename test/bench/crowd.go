package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// tick is the time between two events of a crowd.
const tick = time.Millisecond

// crowd is an application with many executors that do as they are told, and a clock that goes one tick with each event.
type crowd struct {
	app      *application.Application
	now      snapshot.Instant
	timers   map[application.Timer]snapshot.Instant
	version  snapshot.Version
	session  uint64
	profile  application.Profile
	random   *rand.Rand
	alive    []snapshot.ID
	sessions map[snapshot.ID]uint64
	names    map[snapshot.ID]string
	queue    []application.Event
	created  []application.CreatePod
	launched []application.LaunchTasks
	question *allocator.Input // the newest that was asked
	err      error
}

// newCrowd returns a crowd of a size, all running and registered.
func newCrowd(size int) (*crowd, error) {
	c := &crowd{
		now: snapshot.Instant(time.Second), timers: map[application.Timer]snapshot.Instant{},
		random: rand.New(rand.NewPCG(1, uint64(size))), sessions: map[snapshot.ID]uint64{}, names: map[snapshot.ID]string{},
		profile: application.Profile{
			Name: "default", Slots: 1, Target: uint32(size), Max: uint32(size), BatchSize: uint32(size), //nolint:gosec // sizes are constants of the benches
			IdleTimeout: time.Minute, CreationTimeout: 10 * time.Minute,
		},
	}
	c.app = application.New(c.config())
	c.tell(application.PodsListed{Version: c.next()})
	for len(c.alive) < size && c.err == nil {
		if len(c.created) == 0 {
			c.advance(time.Second)
		}
		if len(c.created) == 0 {
			return nil, fmt.Errorf("filling a fleet of %d: it stays at %d", size, len(c.alive))
		}
		c.start(c.take(), c.see)
	}
	c.advance(time.Minute) // until it is quiet
	return c, c.err
}

// config has bounds that are never met: what is measured is the work, not its limits.
func (c *crowd) config() application.Config {
	return application.Config{
		ID: "app", Namespace: "default", Incarnation: 1, Mode: application.Follow, Profiles: []application.Profile{c.profile},
		Batch: 20 * time.Millisecond, Resync: 10 * time.Second, DecisionDeadline: 2 * time.Second,
		MaxTaskAttempts: 4, MaxQueued: 1_000_000, RetainTasks: 1000, RetainBytes: 1 << 20,
		SessionTimeout: 1000 * time.Hour, ReattachGrace: 20 * time.Second,
		Failures: application.FailureBudget{Threshold: 1_000_000, Window: 10 * time.Minute, Initial: 10 * time.Second, Max: 2 * time.Minute},
	}
}

func (c *crowd) next() snapshot.Version {
	c.version++
	return c.version
}

// see tells the application an event and takes the time of nothing.
func (c *crowd) see(_ string, ev application.Event) { c.tell(ev) }

// tell tells the application an event, then what became of the effects, then what time brought.
func (c *crowd) tell(ev application.Event) time.Duration {
	c.now = c.now.Add(tick)
	began := time.Now()
	effects := c.app.Step(c.now, ev)
	d := time.Since(began)
	c.carry(effects)
	c.settle()
	return d
}

// settle tells the application the answers to its effects, and fires the timers that are due.
func (c *crowd) settle() {
	for {
		for len(c.queue) > 0 {
			ev := c.queue[0]
			c.queue = c.queue[1:]
			c.carry(c.app.Step(c.now, ev))
		}
		timer, at := c.first()
		if timer == 0 || at > c.now {
			return
		}
		delete(c.timers, timer)
		c.queue = append(c.queue, application.TimerFired{Timer: timer})
	}
}

// advance lets time pass with nothing but timers.
func (c *crowd) advance(d time.Duration) {
	for end := c.now.Add(d); ; {
		c.settle()
		timer, at := c.first()
		if timer == 0 || at > end {
			c.now = end
			return
		}
		c.now = at
	}
}

func (c *crowd) first() (application.Timer, snapshot.Instant) {
	var first application.Timer
	for timer := application.TimerAsk; timer <= application.TimerRetry; timer++ {
		if at, set := c.timers[timer]; set && (first == 0 || at < c.timers[first]) {
			first = timer
		}
	}
	return first, c.timers[first]
}

func (c *crowd) carry(effects []application.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case application.SetTimer:
			if c.timers[e.Timer] = e.At; e.At == 0 {
				delete(c.timers, e.Timer)
			}
		case application.AskPolicy:
			c.question = e.Input
			c.queue = append(c.queue, c.decide(e))
		case application.CreatePod:
			c.queue = append(c.queue, application.PodCreated{Executor: e.Executor, UID: uid(e.Executor), Version: c.next()})
			c.created, c.names[e.Executor] = append(c.created, e), e.Name
		case application.DeletePod:
			c.queue = append(c.queue, application.PodDeleted{Executor: e.Executor, Outcome: application.DeleteAccepted})
		case application.LaunchTasks:
			c.launched = append(c.launched, e)
		}
	}
}

func uid(id snapshot.ID) string { return fmt.Sprintf("uid-%d", id) }

// decide answers as the default policy does in a fleet that only ever lacks executors, without looking at each of them: building a view of
// thousands between two events would empty the processor's caches, and what is measured is the event.
func (c *crowd) decide(ask application.AskPolicy) application.Decided {
	d := application.Decided{Number: ask.Number, Policy: "direct", By: "native:direct"}
	p := &ask.Input.Profiles[0]
	if live := p.Requested + p.Pending + p.Running; ask.Input.Hook == hostabi.HookAllocate && live < p.Target {
		d.Decision.Creates = []hostabi.Create{{Profile: p.ID, Count: p.Target - live}}
	}
	return d
}

// take returns the pods that were asked for since the last time.
func (c *crowd) take() []application.CreatePod {
	created := c.created
	c.created = nil
	return created
}

// start lets pods come up, which tell hears of.
func (c *crowd) start(pods []application.CreatePod, tell func(kind string, ev application.Event)) {
	for _, p := range pods {
		tell("pending", c.pod(p.Executor, snapshot.Pending))
		tell("running", c.pod(p.Executor, snapshot.Running))
		c.session++
		c.sessions[p.Executor] = c.session
		c.tell(application.Attached{Executor: p.Executor, Session: c.session, UID: uid(p.Executor), Slots: 1})
		c.alive = append(c.alive, p.Executor)
	}
}

// pod is what a watch shows of an executor's pod.
func (c *crowd) pod(id snapshot.ID, phase snapshot.Phase) application.PodObserved {
	o := snapshot.Observation{
		ID: id, Phase: phase, Name: c.names[id], UID: uid(id), Version: c.next(), Node: "node-a", Zone: "zone-a",
	}
	if phase == snapshot.Failed {
		o.Exit = snapshot.Exit{Known: true, Code: 1, Reason: "Error"}
	}
	return application.PodObserved{Pod: o}
}

// turn lets one executor end and another one take its place: six pod events, which tell hears of.
func (c *crowd) turn(tell func(kind string, ev application.Event)) error {
	at := c.random.IntN(len(c.alive))
	id := c.alive[at]
	c.alive[at] = c.alive[len(c.alive)-1]
	c.alive = c.alive[:len(c.alive)-1]
	tell("unchanged", c.pod(id, snapshot.Running))
	tell("ended", c.pod(id, snapshot.Failed))
	c.tell(application.Detached{Executor: id, Session: c.sessions[id], Text: "it ended"})
	tell("gone", c.pod(id, snapshot.Deleted))
	delete(c.sessions, id)
	delete(c.names, id)
	tell("unchanged", c.pod(c.alive[c.random.IntN(len(c.alive))], snapshot.Running))
	if len(c.created) == 0 {
		c.advance(time.Second)
	}
	created := c.take()
	if len(created) != 1 {
		c.err = errors.Join(c.err, fmt.Errorf("replacing executor %d: %d were asked for, not 1", id, len(created)))
	}
	c.start(created, tell)
	return c.err
}

// submit gives the application tasks.
func (c *crowd) submit(tasks int) {
	submit := application.Submit{Request: 1}
	for i := range tasks {
		submit.Tasks = append(submit.Tasks, &task.Spec{Key: fmt.Sprint(i + 1), Command: []string{"true"}})
	}
	c.tell(submit)
}

// report lets the task that was launched first succeed, and returns what that cost the application.
func (c *crowd) report() (time.Duration, error) {
	if len(c.launched) == 0 {
		return 0, errors.Join(c.err, errors.New("reporting a task: none is launched"))
	}
	l := c.launched[0]
	c.launched = c.launched[1:]
	ev := application.Reported{Executor: l.Executor, Session: l.Session}
	for _, launch := range l.Launches {
		ev.Reports = append(ev.Reports, task.Report{Ref: launch.Ref, Outcome: task.OutcomeSucceeded})
	}
	return c.tell(ev), c.err
}
