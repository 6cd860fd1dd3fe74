package pod

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const maxWaitText = 512

// wait says why a pending pod does not run yet. The first thing in the way is told: no node, then what its containers wait for.
func wait(p *corev1.Pod) (snapshot.Wait, string) {
	if c := condition(p, corev1.PodScheduled, corev1.ConditionFalse); c.Type != "" {
		return unscheduled(&c), bounded(cmp.Or(c.Message, c.Reason), maxWaitText)
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			w := list[i].State.Waiting
			if w == nil {
				continue
			}
			if kind := held(w.Reason); kind != snapshot.WaitNone {
				return kind, bounded(join(w.Reason, w.Message), maxWaitText)
			}
		}
	}
	return initialising(p)
}

func unscheduled(c *corev1.PodCondition) snapshot.Wait {
	switch {
	case c.Reason == corev1.PodReasonSchedulingGated: // a queue such as Kueue holds the pod back
		return snapshot.WaitAdmission
	case strings.Contains(strings.ToLower(c.Message), "persistentvolumeclaim"):
		return snapshot.WaitVolume
	}
	return snapshot.WaitUnschedulable
}

// held sorts the reasons for which a kubelet lets a container wait. Those that pass by themselves (ContainerCreating, PodInitializing) are none.
func held(reason string) snapshot.Wait {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return snapshot.WaitImage
	case "CreateContainerConfigError": // a secret or config map that it mounts or reads is not there
		return snapshot.WaitVolume
	case "CreateContainerError", "RunContainerError", "CrashLoopBackOff", "PreCreateHookError", "PostStartHookError":
		return snapshot.WaitInit
	}
	return snapshot.WaitNone
}

// initialising finds the init container that has not done its work.
func initialising(p *corev1.Pod) (snapshot.Wait, string) {
	for i := range p.Status.InitContainerStatuses {
		s := &p.Status.InitContainerStatuses[i]
		restartable := s.Started != nil && *s.Started && s.State.Running != nil && sidecar(p, s.Name)
		if s.State.Terminated == nil && !restartable {
			return snapshot.WaitInit, bounded("init container "+s.Name+" has not ended", maxWaitText)
		}
	}
	return snapshot.WaitNone, ""
}

// sidecar reports whether an init container is one that stays.
func sidecar(p *corev1.Pod, name string) bool {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

func join(reason, text string) string {
	if text == "" {
		return reason
	}
	return reason + ": " + text
}
