package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// zero is the moment that stories call 0. The application has begun before, and its first pass is over.
const zero = snapshot.Instant(time.Hour)

// maxCreated bounds the executors of one story, so that a slip in a number does not take hours.
const maxCreated = 5000

// phases are the states of pods as stories name them.
var phases = map[string]snapshot.Phase{
	"Pending": snapshot.Pending, "Running": snapshot.Running, "Succeeded": snapshot.Succeeded, "Failed": snapshot.Failed,
	"Deleted": snapshot.Deleted, "Unknown": snapshot.Unknown, "Terminating": snapshot.Terminating,
}

// world is what stands around the application in a story: the cluster, the executors, the policy and the clock.
type world struct {
	app     *application.Application
	policy  Policy
	view    hostabi.View
	now     snapshot.Instant
	version snapshot.Version
	session uint64
	request uint64

	failDeletes bool
	pods        map[snapshot.ID]snapshot.Observation // as they were fed last
	sessions    map[snapshot.ID]uint64               // of those that are registered
	events      []application.Event                  // answers that the application has not heard
	refused     string                               // why the newest wish or registration was refused
	deciding    uint64                               // number of the decision that is being carried out
	total       int64
	seen        record
}

// record is what happened since the expectation before.
type record struct {
	created        []pair
	deletes        [][]int64
	timeoutDeletes [][]int64
	released       group // of the newest of deletes
}

// group is what belongs together in deletes: one profile's, by one decision.
type group struct {
	decision uint64
	profile  snapshot.Profile
}

func newWorld(s Scenario, policy Policy) *world {
	w := &world{
		app: application.New(config(s)), policy: policy, now: zero.Add(-2 * s.conf.batchDelay), failDeletes: s.conf.failDeletes,
		pods: map[snapshot.ID]snapshot.Observation{}, sessions: map[snapshot.ID]uint64{},
		seen: record{created: []pair{}, deletes: [][]int64{}, timeoutDeletes: [][]int64{}},
	}
	return w
}

// config is the application that a story is about: its profiles are those that it names.
func config(s Scenario) application.Config {
	cfg := application.Config{
		ID: "story", Namespace: "default", Incarnation: 1, Mode: application.Follow, MaxPending: s.conf.maxPending, MaxLifetime: s.conf.maximum,
		Batch: s.conf.batchDelay, Resync: math.MaxInt32 * time.Second, DecisionDeadline: time.Hour,
		SessionTimeout: math.MaxInt32 * time.Second, ReattachGrace: time.Hour,
	}
	ids := []int64{0}
	for _, step := range s.steps {
		for _, t := range step.target {
			ids = append(ids, t[0])
		}
		for _, p := range step.pods {
			ids = append(ids, p.profile)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		cfg.Profiles = append(cfg.Profiles, application.Profile{
			ID: snapshot.Profile(id), Name: strconv.FormatInt(id, 10), Slots: 1, BatchSize: s.conf.batchSize, MaxPending: s.conf.maxPendingPerRp,
			IdleTimeout: s.conf.idleTimeout, CreationTimeout: s.conf.creationTimeout,
		})
	}
	return cfg
}

// begin lists the cluster, which is empty, and comes to the moment at which the story begins.
func (w *world) begin() error {
	if err := w.list(); err != nil {
		return err
	}
	w.now = zero
	return nil
}

func (w *world) setTargets(targets []pair) error {
	w.request++
	ev := application.SetTargets{Request: w.request}
	for _, t := range targets {
		if t[1] < 0 || t[1] > math.MaxUint32 {
			return fmt.Errorf("target: %d executors of profile %d: expected a number between 0 and %d", t[1], t[0], uint32(math.MaxUint32))
		}
		ev.Targets = append(ev.Targets, snapshot.Target{Profile: snapshot.Profile(t[0]), Count: uint32(t[1])})
	}
	return w.tell(ev)
}

// show feeds one pod.
func (w *world) show(p pod) error {
	o := snapshot.Observation{
		ID: snapshot.ID(p.id), Profile: snapshot.Profile(p.profile), Phase: phases[p.state], UID: uid(p.id), Version: w.next(),
	}
	w.pods[o.ID] = o
	return w.tell(application.PodObserved{Pod: o})
}

// list feeds all pods that are not gone, as new as can be.
func (w *world) list() error {
	ev := application.PodsListed{Version: w.next()}
	for _, o := range w.pods {
		if o.Phase != snapshot.Deleted {
			ev.Pods = append(ev.Pods, o)
		}
	}
	slices.SortFunc(ev.Pods, func(a, b snapshot.Observation) int { return int(a.ID) - int(b.ID) })
	return w.tell(ev)
}

// register makes the executors with the ids, and no others, the registered ones.
func (w *world) register(ids []int64) error {
	wanted := map[snapshot.ID]bool{}
	for _, id := range ids {
		wanted[snapshot.ID(id)] = true
	}
	var gone []snapshot.ID
	for id := range w.sessions {
		if !wanted[id] {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for _, id := range gone {
		session := w.sessions[id]
		delete(w.sessions, id)
		if err := w.tell(application.Detached{Executor: id, Session: session, Text: "the story says so", Leaving: true}); err != nil {
			return err
		}
	}
	for _, id := range ids {
		id := snapshot.ID(id)
		if _, there := w.sessions[id]; there {
			continue
		}
		w.session++
		w.sessions[id] = w.session
		if err := w.tell(application.Attached{Executor: id, Session: w.session, UID: uid(int64(id)), Slots: 1}); err != nil {
			delete(w.sessions, id)
			return fmt.Errorf("registering executor %d: %w", id, err)
		}
	}
	return nil
}

// passTime moves the clock. Nothing fires.
func (w *world) passTime(s *step) error {
	if s.at != nil {
		at := zero.Add(*s.at)
		if at < w.now {
			return fmt.Errorf("at: the clock stands at %d ms already", w.now.Sub(zero).Milliseconds())
		}
		w.now = at
	}
	w.now = w.now.Add(s.advance)
	return nil
}

func (w *world) pass() error { return w.tell(application.TimerFired{Timer: application.TimerAsk}) }

// released reports whether a registration would be refused because the executor was let go.
func (w *world) released(id int64) bool {
	e, ok := w.app.Snapshot().Executor(snapshot.ID(id))
	return ok && e.Condemned
}

func (w *world) next() snapshot.Version {
	w.version++
	return w.version
}

func uid(id int64) string { return "uid-" + strconv.FormatInt(id, 10) }

// tell hands an event to the application, and then all that it sets off.
func (w *world) tell(ev application.Event) error {
	w.refused = ""
	w.events = append(w.events, ev)
	for len(w.events) > 0 {
		ev := w.events[0]
		w.events = w.events[1:]
		w.deciding = 0
		if d, ok := ev.(application.Decided); ok {
			w.deciding = d.Number
		}
		effects := w.app.Step(w.now, ev)
		w.timeouts(effects)
		for _, effect := range effects {
			if err := w.carry(effect); err != nil {
				return err
			}
		}
	}
	if w.refused != "" {
		return errors.New(w.refused)
	}
	return nil
}

// carry does what an effect asks for, as a cluster would in which all goes well.
func (w *world) carry(effect application.Effect) error {
	switch e := effect.(type) {
	case application.CreatePod:
		if w.total++; w.total > maxCreated {
			return fmt.Errorf("the policy has created more than %d executors; a story is for fewer", maxCreated)
		}
		w.seen.created = append(w.seen.created, pair{int64(e.Executor), int64(e.Profile)})
		w.events = append(w.events, application.PodCreated{Executor: e.Executor, UID: uid(int64(e.Executor)), Version: w.next()})
	case application.DeletePod:
		w.delete(e)
	case application.AskPolicy:
		return w.ask(e)
	case application.Reply:
		w.refused = e.Refused.Text
	case application.Refuse:
		w.refused = e.Text
	}
	return nil
}

func (w *world) delete(e application.DeletePod) {
	outcome := application.DeleteAccepted
	if w.failDeletes {
		outcome = application.DeleteFailed
	}
	w.events = append(w.events, application.PodDeleted{Executor: e.Executor, Outcome: outcome})
	if e.Why != application.DeleteReleased {
		return
	}
	executor, _ := w.app.Snapshot().Executor(e.Executor)
	g := group{w.deciding, executor.Profile}
	if last := len(w.seen.deletes) - 1; last >= 0 && w.seen.released == g {
		w.seen.deletes[last] = append(w.seen.deletes[last], int64(e.Executor))
		return
	}
	w.seen.released = g
	w.seen.deletes = append(w.seen.deletes, []int64{int64(e.Executor)})
}

// timeouts takes down the requests that were given up together.
func (w *world) timeouts(effects []application.Effect) {
	var ids []int64
	for _, effect := range effects {
		if e, ok := effect.(application.DeletePod); ok && e.Why == application.DeleteTimedOut {
			ids = append(ids, int64(e.Executor))
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		w.seen.timeoutDeletes = append(w.seen.timeoutDeletes, ids)
	}
}

func (w *world) ask(e application.AskPolicy) error {
	e.Input.View(&w.view, hostabi.Projection{})
	answer, err := w.policy.Call(e.Input.Hook, w.view.Encode(nil, hostabi.Projection{}))
	if err != nil {
		return fmt.Errorf("asking the policy about %v: %w", e.Input.Hook, err)
	}
	decision, err := hostabi.DecodeDecision(answer)
	if err != nil {
		return fmt.Errorf("reading the policy's answer to %v: %w", e.Input.Hook, err)
	}
	w.events = append(w.events, application.Decided{Number: e.Number, Decision: decision, Policy: "story", By: "story"})
	return nil
}
