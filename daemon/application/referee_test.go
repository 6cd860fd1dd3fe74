package application_test

import (
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
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
	late    map[*task.Spec]snapshot.Instant  // when the deadlines of submitted tasks are over
	now     snapshot.Instant
	number  uint64 // of the newest question
	stopped bool
	over    bool
}

func newReferee(t *rapid.T, cfg application.Config) *referee {
	return &referee{
		t: t, cfg: cfg, asked: map[snapshot.ID]application.CreatePod{}, exists: map[snapshot.ID]snapshot.Version{},
		ended: map[task.ID]task.State{}, late: map[*task.Spec]snapshot.Instant{},
	}
}

func (r *referee) watch(now snapshot.Instant, ev application.Event, effects []application.Effect) {
	r.history = append(r.history, told{now, ev})
	r.now = max(r.now, now)
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
	case application.Submit:
		for _, s := range ev.Tasks {
			if s.Deadline > 0 {
				r.late[s] = r.now.Add(s.Deadline)
			}
		}
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
	case application.LaunchTasks:
		for _, l := range e.Launches {
			if late, bounded := r.late[l.Spec]; bounded && r.now >= late {
				r.t.Fatalf("task %d is launched at %d, and its deadline was over at %d", l.Ref.Task, r.now, late)
			}
		}
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
