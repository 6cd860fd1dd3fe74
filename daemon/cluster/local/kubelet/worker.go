package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
)

// worker runs one pod. Its loop is the only one that touches its containers' states.
type worker struct {
	k     *Kubelet
	pod   *corev1.Pod // as it was given to this node
	since time.Time

	inits, mains []*unit
	notes        chan note
	jobs         sync.WaitGroup

	launching context.Context //nolint:containedctx // ends the queueing of containers that nobody wants any more
	forget    context.CancelFunc
	stopping  bool
	killAt    time.Time // when patience ends; zero while not stopping
	verdict   verdict

	news   chan struct{} // there is something new in latest
	mu     sync.Mutex
	latest *corev1.Pod
	gone   bool
}

// verdict is why the whole pod ended, when not by its containers alone.
type verdict struct{ reason, message string }

// note is what a container's starter tells the loop: err or process first, then exit.
type note struct {
	unit    *unit
	process *guard.Process
	err     error
	exit    *guard.Exit
}

func newWorker(k *Kubelet, pod *corev1.Pod) *worker {
	w := &worker{k: k, pod: pod, since: time.Now(), notes: make(chan note), news: make(chan struct{}, 1), latest: pod}
	for i := range pod.Spec.InitContainers {
		w.inits = append(w.inits, newUnit(&pod.Spec.InitContainers[i], true, false))
	}
	for i := range pod.Spec.Containers {
		w.mains = append(w.mains, newUnit(&pod.Spec.Containers[i], false, len(w.inits) > 0))
	}
	return w
}

// tell hands over the newest state of the pod; gone when it has left the API.
func (w *worker) tell(pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	w.latest, w.gone = pod, gone
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default: // the loop has not yet looked at the one before
	}
}

func (w *worker) last() (*corev1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest, w.gone
}

// run runs the pod's containers until they have ended for good, or until the pod is deleted or ctx is done and they
// have been ended. Nothing of the pod is left when it returns.
func (w *worker) run(ctx context.Context) {
	defer w.jobs.Wait()
	w.launching, w.forget = context.WithCancel(context.WithoutCancel(ctx))
	defer w.forget()
	stop := ctx.Done()
	w.lookAtNews()
	w.advance()
	for !w.finished() {
		timer := w.timer()
		select {
		case <-w.news:
			w.lookAtNews()
		case n := <-w.notes:
			w.hear(n)
		case <-timer:
		case <-stop:
			stop = nil
			w.stop(w.k.config.StopGrace)
		}
		w.advance()
	}
	w.report()
}

func (w *worker) lookAtNews() {
	pod, gone := w.last()
	switch {
	case gone:
		w.stop(0)
	case pod.DeletionTimestamp != nil:
		grace := time.Duration(0)
		if g := pod.DeletionGracePeriodSeconds; g != nil {
			grace = time.Duration(*g) * time.Second
		}
		w.stop(grace)
	}
}

// stop asks all containers to end and sets the time at which they are killed. A second call can only make it sooner.
func (w *worker) stop(grace time.Duration) {
	at := time.Now().Add(grace)
	if w.stopping {
		if at.Before(w.killAt) {
			w.killAt = at
		}
		return
	}
	w.stopping, w.killAt = true, at
	w.forget()
	for u := range w.units {
		if u.process != nil {
			w.k.events.record(w.pod, corev1.EventTypeNormal, "Killing", "Stopping container "+u.spec.Name)
			u.process.Terminate()
		}
	}
}

// advance does what is due now and reports the state of the pod.
func (w *worker) advance() {
	now := time.Now()
	if d := w.deadline(); !w.stopping && !d.IsZero() && !now.Before(d) {
		w.verdict = verdict{"DeadlineExceeded", "Pod was active on the node longer than the specified deadline"}
		w.stop(w.grace())
	}
	if w.stopping && !now.Before(w.killAt) {
		for u := range w.units {
			if u.process != nil {
				u.process.Kill()
			}
		}
	}
	if !w.stopping {
		w.startDue(now)
	}
	w.report()
}

// startDue starts the next init container or, after the last one, all containers that wait.
func (w *worker) startDue(now time.Time) {
	for _, u := range w.inits {
		if u.state != exited || u.exitCode() != 0 {
			w.startOne(u, now)
			return
		}
	}
	for _, u := range w.mains {
		w.startOne(u, now)
	}
}

func (w *worker) startOne(u *unit, now time.Time) {
	if u.state == exited && u.startsAgain(w.pod.Spec.RestartPolicy) {
		u.planRestart(w, now)
	}
	if u.state == waiting && !now.Before(u.again) {
		w.launch(u)
	}
}

// launch starts a container aside; the loop hears of it by notes.
func (w *worker) launch(u *unit) {
	u.state, u.reason, u.message = starting, "ContainerCreating", ""
	attempt := u.restarts
	w.jobs.Go(func() {
		select {
		case w.k.starting <- struct{}{}:
		case <-w.launching.Done():
			w.notes <- note{unit: u, err: w.launching.Err()}
			return
		}
		process, err := w.start(u.spec, attempt)
		<-w.k.starting
		w.notes <- note{unit: u, process: process, err: err}
		if err != nil {
			return
		}
		exit := process.Wait()
		w.notes <- note{unit: u, exit: &exit}
	})
}

func (w *worker) hear(n note) {
	switch {
	case n.exit != nil:
		n.unit.finish(w, *n.exit)
	case n.err != nil:
		n.unit.refuse(w, n.err)
	default:
		n.unit.state, n.unit.process = running, n.process
		w.k.events.record(w.pod, corev1.EventTypeNormal, "Started", "Started container "+n.unit.spec.Name)
		if w.stopping {
			n.process.Terminate()
		}
	}
}

// finished reports whether nothing runs and nothing will.
func (w *worker) finished() bool {
	for u := range w.units {
		if u.state == starting || u.state == running {
			return false
		}
	}
	return w.stopping || terminal(w.phase())
}

// timer fires when the next thing is due; nil when only news can change anything.
func (w *worker) timer() <-chan time.Time {
	var due time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	now := time.Now()
	if w.stopping {
		if now.Before(w.killAt) { // afterwards all has been killed, and only the exits are waited for
			sooner(w.killAt)
		}
	} else {
		sooner(w.deadline())
		for u := range w.units {
			if u.state == waiting {
				sooner(u.again)
			}
		}
	}
	if due.IsZero() {
		return nil
	}
	return time.After(due.Sub(now))
}

func (w *worker) deadline() time.Time {
	pod, _ := w.last()
	if s := pod.Spec.ActiveDeadlineSeconds; s != nil {
		return w.since.Add(time.Duration(*s) * time.Second)
	}
	return time.Time{}
}

func (w *worker) grace() time.Duration {
	if s := w.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// units yields all containers of the pod, init containers first.
func (w *worker) units(yield func(*unit) bool) {
	for _, list := range [][]*unit{w.inits, w.mains} {
		for _, u := range list {
			if !yield(u) {
				return
			}
		}
	}
}

func (w *worker) name() string {
	return fmt.Sprintf("%s_%s(%s)", w.pod.Name, w.pod.Namespace, w.pod.UID)
}
