package kubelet

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

func terminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// phase follows from the containers and the restart policy alone, as a kubelet's does.
func (w *worker) phase() corev1.PodPhase {
	if w.verdict.reason != "" {
		return corev1.PodFailed
	}
	policy := w.pod.Spec.RestartPolicy
	for _, u := range w.inits {
		switch {
		case u.state == exited && u.exitCode() == 0:
			continue
		case u.state == exited && (w.stopping || !u.startsAgain(policy)):
			return corev1.PodFailed
		}
		return w.unstarted()
	}
	succeeded := true
	for _, u := range w.mains {
		switch {
		case u.state == exited && (w.stopping || !u.startsAgain(policy)):
			succeeded = succeeded && u.exitCode() == 0
			continue
		case u.state == running, u.state == exited, u.before != nil:
			return corev1.PodRunning
		}
		if !w.anyStarted() {
			return w.unstarted()
		}
		return corev1.PodRunning
	}
	if succeeded {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// unstarted is the phase of a pod that has not got all its containers going: it waits, or it never will.
func (w *worker) unstarted() corev1.PodPhase {
	if !w.stopping {
		return corev1.PodPending
	}
	for u := range w.units {
		if u.state == starting || u.state == running {
			return corev1.PodPending
		}
	}
	return corev1.PodFailed
}

func (w *worker) anyStarted() bool {
	for _, u := range w.mains {
		if u.state == running || u.ran != nil {
			return true
		}
	}
	return false
}

// report writes the state of the pod into its status.
func (w *worker) report() {
	w.k.updateStatus(w.pod, func(now time.Time, pod *corev1.Pod) bool {
		s := &pod.Status
		if terminal(s.Phase) {
			return false // an ended pod does not change
		}
		s.Phase = w.phase()
		s.Reason, s.Message = w.verdict.reason, w.verdict.message
		s.ObservedGeneration = pod.Generation
		at := metav1.NewTime(w.since.Truncate(time.Second))
		s.StartTime = &at
		s.HostIP, s.HostIPs = Address, []corev1.HostIP{{IP: Address}}
		s.PodIP, s.PodIPs = Address, []corev1.PodIP{{IP: Address}}
		s.InitContainerStatuses = statuses(w.inits)
		s.ContainerStatuses = statuses(w.mains)
		w.conditions(now, pod)
		return true
	})
}

func (w *worker) conditions(now time.Time, pod *corev1.Pod) {
	set := func(kind corev1.PodConditionType, ok bool, reason, message string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation}
		if !ok {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		}
		model.SetCondition(pod, now, c)
	}
	set(corev1.PodReadyToStartContainers, true, "", "")
	incomplete := names(w.inits, func(u *unit) bool { return u.state != exited || u.exitCode() != 0 })
	set(corev1.PodInitialized, len(incomplete) == 0, "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " ")))
	unready := names(w.mains, func(u *unit) bool { return u.state != running })
	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		reason, message = "PodCompleted", ""
	case corev1.PodFailed:
		reason, message = "PodFailed", ""
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}
	set(corev1.ContainersReady, len(unready) == 0, reason, message)
	set(corev1.PodReady, len(unready) == 0, reason, message)
}

func names(units []*unit, which func(*unit) bool) []string {
	var all []string
	for _, u := range units {
		if which(u) {
			all = append(all, u.spec.Name)
		}
	}
	return all
}

func statuses(units []*unit) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for _, u := range units {
		all = append(all, u.status())
	}
	return all
}

func (u *unit) status() corev1.ContainerStatus {
	started := u.state == running
	s := corev1.ContainerStatus{
		Name: u.spec.Name, Image: u.spec.Image, RestartCount: u.restarts, Started: &started, Ready: started,
	}
	switch u.state {
	case waiting, starting:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: u.reason, Message: u.message}
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(u.process.Started().Truncate(time.Second))}
		s.ContainerID = containerID(u.process)
	case exited:
		s.State.Terminated = u.ran.DeepCopy()
		s.ContainerID = u.ran.ContainerID
		s.Ready = u.init && u.exitCode() == 0
	}
	if u.before != nil {
		s.LastTerminationState.Terminated = u.before.DeepCopy()
	}
	return s
}
