package pod

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// The most bytes of texts in an observation. A pod's status may hold far more, and an observation lives as long as its executor.
const (
	maxName    = 253
	maxReason  = 128
	maxMessage = 4 << 10
)

// Seen is an executor's pod as the cluster shows it.
type Seen struct {
	App         string
	Incarnation uint32
	Pod         snapshot.Observation
}

// Read says what a pod shows of its executor: who it is, by its labels, and its State. A pod whose labels do not name one is an error; nothing
// else is.
func Read(p *corev1.Pod, container string) (Seen, error) {
	seen, err := named(p)
	if err != nil {
		return Seen{}, err
	}
	o := State(p, container)
	o.ID, o.Profile = seen.Pod.ID, seen.Pod.Profile
	seen.Pod = o
	return seen, nil
}

// State says what a pod shows apart from who it is: an observation without ID and profile. The executor's own container is the one of the given
// name, or else (also if the name is empty) the one that Build noted, or "executor", or the first.
//
// An executor has ended when its own container has, whatever still runs beside it; a container that fails beside it ends it as well. A pod that
// is being deleted and has not ended is Terminating.
func State(p *corev1.Pod, container string) snapshot.Observation {
	version, _ := strconv.ParseUint(p.ResourceVersion, 10, 64) // 0, unknown, where a cluster does not count
	own := ownStatus(p, container)
	o := snapshot.Observation{
		Phase:    phase(p, own),
		Name:     bounded(p.Name, maxName),
		UID:      bounded(string(p.UID), maxReason),
		Version:  snapshot.Version(version),
		Node:     bounded(p.Spec.NodeName, maxName),
		Zone:     bounded(cmp.Or(p.Labels[labelZone], p.Spec.NodeSelector[labelZone]), maxName),
		Capacity: bounded(cmp.Or(p.Labels[labelCapacity], p.Spec.NodeSelector[labelCapacity]), maxName),
		Deleting: p.DeletionTimestamp != nil,
	}
	if own != nil {
		o.Restarts = uint32(max(own.RestartCount, 0)) //nolint:gosec // a count that is not negative
	}
	switch {
	case o.Phase == snapshot.Pending:
		o.Wait, o.WaitText = wait(p)
	case o.Phase.Terminal() || o.Phase == snapshot.Terminating:
		o.Exit = exit(p, own)
	}
	return o
}

// named says whom a pod's labels name.
func named(p *corev1.Pod) (Seen, error) {
	id, err := number(p, LabelExecutor, 64)
	if err != nil {
		return Seen{}, err
	}
	profile, err := number(p, LabelProfile, 32)
	if err != nil {
		return Seen{}, err
	}
	incarnation, err := number(p, LabelIncarnation, 32)
	if err != nil {
		return Seen{}, err
	}
	app := p.Labels[LabelApp]
	if app == "" || len(app) > MaxName {
		return Seen{}, fmt.Errorf("reading pod %s: label %s does not name an application", bounded(p.Name, maxName), LabelApp)
	}
	if id == 0 {
		return Seen{}, fmt.Errorf("reading pod %s: label %s is 0; executors count from 1", bounded(p.Name, maxName), LabelExecutor)
	}
	who := snapshot.Observation{ID: snapshot.ID(id), Profile: snapshot.Profile(profile)}
	return Seen{App: app, Incarnation: uint32(incarnation), Pod: who}, nil //nolint:gosec // parsed with 32 bits
}

func number(p *corev1.Pod, label string, bits int) (uint64, error) {
	text, ok := p.Labels[label]
	if !ok {
		return 0, fmt.Errorf("reading pod %s: it has no label %s", bounded(p.Name, maxName), label)
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("reading pod %s: label %s is %q, not a number", bounded(p.Name, maxName), label, bounded(text, maxReason))
	}
	return n, nil
}

// ownStatus is the status of the executor's own container, nil if the pod shows none. Statuses come in no given order, so without a name that
// fits the order of the pod's containers says which is first.
func ownStatus(p *corev1.Pod, name string) *corev1.ContainerStatus {
	candidates := []string{name, p.Annotations[AnnotationContainer], DefaultContainer}
	if len(p.Spec.Containers) > 0 {
		candidates = append(candidates, p.Spec.Containers[0].Name)
	}
	for _, want := range candidates {
		for i := range p.Status.ContainerStatuses {
			if s := &p.Status.ContainerStatuses[i]; want != "" && s.Name == want {
				return s
			}
		}
	}
	if len(p.Status.ContainerStatuses) == 0 || len(p.Spec.Containers) > 0 {
		return nil
	}
	return &p.Status.ContainerStatuses[0]
}

func phase(p *corev1.Pod, own *corev1.ContainerStatus) snapshot.Phase {
	said := strings.ToLower(string(p.Status.Phase))
	switch {
	case said == "failed":
		return snapshot.Failed
	case said == "succeeded":
		return snapshot.Succeeded
	case said == "running" && own != nil && own.State.Terminated != nil:
		if own.State.Terminated.ExitCode != 0 {
			return snapshot.Failed
		}
		return snapshot.Succeeded
	case said == "running" && failedBeside(p, own) != nil:
		return snapshot.Failed
	case p.DeletionTimestamp != nil, said == "terminating":
		return snapshot.Terminating
	case said == "pending":
		return snapshot.Pending
	case said == "running":
		return snapshot.Running
	}
	return snapshot.Unknown
}

// failedBeside finds a container beside the executor's that has failed for good. Where failed containers are started again, none has.
func failedBeside(p *corev1.Pod, own *corev1.ContainerStatus) *corev1.ContainerStatus {
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return nil
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if (own == nil || s.Name != own.Name) && s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return s
		}
	}
	return nil
}

// exit says how an executor ended, or why it is going. The reason is the one that explains most: memory, then what the node or the control
// plane did to the pod, then the container's own.
func exit(p *corev1.Pod, own *corev1.ContainerStatus) snapshot.Exit {
	var e snapshot.Exit
	var ended corev1.ContainerStateTerminated
	if own != nil && own.State.Terminated != nil {
		ended = *own.State.Terminated
		e.Known, e.Code = true, ended.ExitCode
	}
	var oom string
	if ended.Reason == "OOMKilled" {
		oom = ended.Reason
	}
	disruption := condition(p, corev1.DisruptionTarget, corev1.ConditionTrue)
	var aside, asideText string
	if s := failedBeside(p, own); s != nil && (!e.Known || p.Status.Phase != corev1.PodRunning) {
		aside = "ContainerFailed"
		asideText = fmt.Sprintf("container %q ended with exit code %d", s.Name, s.State.Terminated.ExitCode)
	}
	e.Reason = bounded(cmp.Or(oom, p.Status.Reason, disruption.Reason, ended.Reason, aside), maxReason)
	e.Message = message(p.Status.Message, disruption.Message, asideText, ended.Message)
	return e
}

// message joins texts. The last is the tail of a log: if there is too much, its beginning goes.
func message(texts ...string) string {
	const each = maxMessage / 8
	var out []string
	for i, t := range texts {
		t = strings.TrimSpace(t)
		switch {
		case t == "":
		case i < len(texts)-1:
			out = append(out, bounded(t, each))
		default:
			out = append(out, tail(t, maxMessage-(len(texts)-1)*(each+1)))
		}
	}
	return strings.Join(out, "\n")
}

func condition(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	for i := range p.Status.Conditions {
		if c := p.Status.Conditions[i]; c.Type == kind && c.Status == status {
			return c
		}
	}
	return corev1.PodCondition{}
}

// bounded is the beginning of a text, valid UTF-8, and at most limit bytes.
func bounded(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(s); i++ {
			s = s[:len(s)-1]
		}
	}
	return clean(s, limit)
}

// tail is the end of a text, valid UTF-8, and at most limit bytes.
func tail(s string, limit int) string {
	if len(s) > limit {
		s = s[len(s)-limit:]
		for i := 0; i < utf8.UTFMax && !utf8.RuneStart(s[0]); i++ {
			s = s[1:]
		}
	}
	return clean(s, limit)
}

// clean replaces what is not UTF-8 by a byte, so that the text does not grow past its limit.
func clean(s string, limit int) string {
	if s = strings.ToValidUTF8(s, "?"); len(s) > limit {
		return s[:limit]
	}
	return strings.Clone(s) // a piece must not keep the whole alive
}
