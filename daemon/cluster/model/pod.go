package model

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
)

// preparePod gives a new pod the status that no client may choose.
func preparePod(_ *Server, _ time.Time, obj Object) {
	pod := obj.(*corev1.Pod)
	pod.Generation = 1
	defaultPod(&pod.Spec)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}
}

// defaultPod fills in what an API server fills in whenever it reads a pod. A second time it changes nothing.
func defaultPod(spec *corev1.PodSpec) {
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setPointer(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	setPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	setPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	setPointer(&spec.Priority, 0)
	setPointer(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	defaultTolerations(spec)
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
	for name, limit := range c.Resources.Limits {
		if _, given := c.Resources.Requests[name]; given {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = limit.DeepCopy()
	}
}

func pullPolicy(image string) corev1.PullPolicy {
	base := image[strings.LastIndexByte(image, '/')+1:]
	tag := strings.LastIndexByte(base, ':')
	if strings.Contains(base, "@") || tag >= 0 && base[tag:] != ":latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.ConfigMap != nil {
		setPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.HostPath != nil {
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
}

// defaultTolerations lets a pod stay on a lost node for five minutes, as every server is set up to.
func defaultTolerations(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerates(spec.Tolerations, key) {
			patience := int64(300)
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &patience,
			})
		}
	}
}

func tolerates(have []corev1.Toleration, key string) bool {
	for _, t := range have {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

// qosClass is Guaranteed when every container limits cpu and memory and requests the same, BestEffort when nothing is
// requested or limited, else Burstable.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, best := true, true
	for _, c := range append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			if !request.IsZero() || !limit.IsZero() {
				best = false
			}
			if limit.IsZero() || request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case best:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// preparePodUpdate keeps the status, which has its own subresource, and counts a new specification.
func preparePodUpdate(obj, old Object) {
	pod, before := obj.(*corev1.Pod), old.(*corev1.Pod)
	pod.Status = before.Status
	defaultPod(&pod.Spec)
	if !sameSpec(&pod.Spec, &before.Spec) {
		pod.Generation = before.Generation + 1
	}
}

// preparePodStatus lets a status update change metadata, but neither the specification nor the owners.
func preparePodStatus(obj, old Object) {
	pod, before := obj.(*corev1.Pod), old.(*corev1.Pod)
	pod.Spec = before.Spec
	pod.OwnerReferences = before.OwnerReferences
	pod.Status.QOSClass = before.Status.QOSClass
}

// podGrace is how long a pod may take to end: not at all when no kubelet has it, or when it has ended already.
func podGrace(obj Object, asked *int64) int64 {
	pod := obj.(*corev1.Pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	var grace int64
	switch {
	case pod.Spec.NodeName == "" || ended:
		return 0
	case asked != nil:
		grace = *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if grace < 0 {
		return 1
	}
	return grace
}

// Requests returns what a pod asks of a node: the sum over its containers, or what its most demanding init container
// asks for when that is more.
func Requests(pod *corev1.Pod, name corev1.ResourceName) quantity.Quantity {
	var sum quantity.Quantity
	for _, c := range pod.Spec.Containers {
		sum.Add(c.Resources.Requests[name])
	}
	for _, c := range pod.Spec.InitContainers {
		if q := c.Resources.Requests[name]; q.Cmp(sum) > 0 {
			sum = q.DeepCopy()
		}
	}
	return sum
}
