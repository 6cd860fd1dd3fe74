package pod_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// labelled is a pod of executor 7 with a status.
func labelled(status string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a-i1-exec-7", Namespace: "batch", UID: "u7", ResourceVersion: "100",
			Labels: map[string]string{pod.LabelApp: "a", pod.LabelExecutor: "7", pod.LabelProfile: "2", pod.LabelIncarnation: "1"},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "executor"}, {Name: "side"}}},
	}
	if err := json.Unmarshal([]byte(status), &p.Status); err != nil {
		panic(err)
	}
	return p
}

const (
	ownRuns   = `{"name":"executor","state":{"running":{}}}`
	ownDone   = `{"name":"executor","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}`
	ownFailed = `{"name":"executor","state":{"terminated":{"exitCode":1,"reason":"Error"}}}`
	sideRuns  = `{"name":"side","state":{"running":{}}}`
	sideDone  = `{"name":"side","state":{"terminated":{"exitCode":0}}}`
	sideFails = `{"name":"side","state":{"terminated":{"exitCode":3,"reason":"Error"}}}`
)

func running(statuses ...string) string {
	return `{"phase":"Running","containerStatuses":[` + strings.Join(statuses, ",") + `]}`
}

// The state of an executor is that of its own container, unless the whole pod has ended or is being deleted.
func TestReadPhase(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   string
		deleting bool
		want     snapshot.Phase
	}{
		{"pending", `{"phase":"Pending"}`, false, snapshot.Pending},
		{"case does not matter", `{"phase":"pending"}`, false, snapshot.Pending},
		{"running", running(ownRuns), false, snapshot.Running},
		{"running, no statuses yet", `{"phase":"Running"}`, false, snapshot.Running},
		{"running beside a sidecar that ended well", running(ownRuns, sideDone), false, snapshot.Running},
		{"running beside a sidecar that failed", running(ownRuns, sideFails), false, snapshot.Failed},
		{"finished beside a running sidecar", running(ownDone, sideRuns), false, snapshot.Succeeded},
		{"failed beside a running sidecar", running(sideRuns, ownFailed), false, snapshot.Failed},
		{"finished beside a sidecar that failed", running(sideFails, ownDone), false, snapshot.Succeeded},
		{"succeeded", `{"phase":"Succeeded"}`, false, snapshot.Succeeded},
		{"failed", `{"phase":"Failed"}`, false, snapshot.Failed},
		{"evicted", `{"phase":"Failed","reason":"Evicted"}`, false, snapshot.Failed},
		{"unknown", `{"phase":"Unknown"}`, false, snapshot.Unknown},
		{"no phase", `{}`, false, snapshot.Unknown},
		{"a phase of the future", `{"phase":"Paused"}`, false, snapshot.Unknown},
		{"terminating as a phase", `{"phase":"Terminating"}`, false, snapshot.Terminating},
		{"running, being deleted", running(ownRuns), true, snapshot.Terminating},
		{"pending, being deleted", `{"phase":"Pending"}`, true, snapshot.Terminating},
		{"no phase, being deleted", `{}`, true, snapshot.Terminating},
		{"unknown, being deleted", `{"phase":"Unknown"}`, true, snapshot.Terminating},
		{"ended, being deleted", running(ownFailed), true, snapshot.Failed},
		{"succeeded, being deleted", `{"phase":"Succeeded"}`, true, snapshot.Succeeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := labelled(c.status)
			if c.deleting {
				p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			seen, err := pod.Read(p, "")
			if err != nil {
				t.Fatal(err)
			}
			if seen.Pod.Phase != c.want {
				t.Errorf("phase = %v, want %v", seen.Pod.Phase, c.want)
			}
			if seen.Pod.Deleting != c.deleting {
				t.Errorf("deleting: %v, want %v", seen.Pod.Deleting, c.deleting)
			}
		})
	}
}

// Where failed containers are started again, one that failed has not ended the pod.
func TestReadLeavesRestartedSidecarsAlone(t *testing.T) {
	p := labelled(running(ownRuns, sideFails))
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	if seen, _ := pod.Read(p, ""); seen.Pod.Phase != snapshot.Running {
		t.Errorf("phase = %v, want Running", seen.Pod.Phase)
	}
}

// The executor's container is found by the given name, the one that was noted, the usual one, or the first, in any order of the statuses.
func TestReadFindsContainer(t *testing.T) {
	for _, c := range []struct {
		name, asked, noted string
		want               int32
	}{
		{"the usual one", "", "", 1},
		{"the noted one", "", "side", 3},
		{"the given one", "executor", "side", 1},
		{"a name that fits none", "gone", "", 1},
	} {
		p := labelled(`{"phase":"Failed","containerStatuses":[` + sideFails + "," + ownFailed + `]}`)
		p.Annotations = map[string]string{pod.AnnotationContainer: c.noted}
		seen, _ := pod.Read(p, c.asked)
		if e := seen.Pod.Exit; !e.Known || e.Code != c.want {
			t.Errorf("%s: exit = %+v, want code %d", c.name, e, c.want)
		}
	}
	p := labelled(running(sideRuns, `{"name":"main","state":{"terminated":{"exitCode":9}}}`))
	p.Spec.Containers[0].Name = "main"
	if seen, _ := pod.Read(p, ""); seen.Pod.Exit.Code != 9 {
		t.Errorf("the first of the pod's containers is not the executor: %+v", seen.Pod.Exit)
	}
}

// The reason of an end is the one that explains most.
func TestReadExit(t *testing.T) {
	for _, c := range []struct {
		name   string
		status string
		want   snapshot.Exit
	}{
		{"own code", running(ownFailed), snapshot.Exit{Known: true, Code: 1, Reason: "Error"}},
		{
			"out of memory", `{"phase":"Failed","reason":"Evicted","containerStatuses":[{"name":"executor","state":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"last words\n"}}}]}`,
			snapshot.Exit{Known: true, Code: 137, Reason: "OOMKilled", Message: "last words"},
		},
		{
			"evicted by the node", `{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory."}`,
			snapshot.Exit{Reason: "Evicted", Message: "The node was low on resource: memory."},
		},
		{
			"evicted through the API", `{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI","message":"drain"}],"containerStatuses":[` + ownFailed + `]}`,
			snapshot.Exit{Known: true, Code: 1, Reason: "EvictionByEvictionAPI", Message: "drain"},
		},
		{
			"a sidecar failed", running(ownRuns, sideFails),
			snapshot.Exit{Reason: "ContainerFailed", Message: `container "side" ended with exit code 3`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, err := pod.Read(labelled(c.status), "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, seen.Pod.Exit); diff != "" {
				t.Errorf("exit differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadWait(t *testing.T) {
	waiting := func(list, reason, text string) string {
		return `{"phase":"Pending","` + list + `":[{"name":"executor","state":{"waiting":{"reason":"` + reason + `","message":"` + text + `"}}}]}`
	}
	unscheduled := func(reason, text string) string {
		return `{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"` + reason + `","message":"` + text + `"}]}`
	}
	for _, c := range []struct {
		name, status string
		want         snapshot.Wait
		text         string
	}{
		{"nothing said", `{"phase":"Pending"}`, snapshot.WaitNone, ""},
		{"being made", waiting("containerStatuses", "ContainerCreating", ""), snapshot.WaitNone, ""},
		{"no room", unscheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."), snapshot.WaitUnschedulable, "0/3 nodes are available: 3 Insufficient cpu."},
		{"gated", unscheduled("SchedulingGated", ""), snapshot.WaitAdmission, "SchedulingGated"},
		{"no claim", unscheduled("Unschedulable", "pod has unbound immediate PersistentVolumeClaims"), snapshot.WaitVolume, "pod has unbound immediate PersistentVolumeClaims"},
		{"no image", waiting("containerStatuses", "ImagePullBackOff", "no such tag"), snapshot.WaitImage, "ImagePullBackOff: no such tag"},
		{"no image to begin with", waiting("initContainerStatuses", "ErrImagePull", ""), snapshot.WaitImage, "ErrImagePull"},
		{"no secret", waiting("containerStatuses", "CreateContainerConfigError", "x"), snapshot.WaitVolume, "CreateContainerConfigError: x"},
		{"init runs", `{"phase":"Pending","initContainerStatuses":[{"name":"prepare","state":{"running":{}}}]}`, snapshot.WaitInit, "init container prepare has not ended"},
		{"running says nothing", running(`{"name":"executor","state":{"waiting":{"reason":"ErrImagePull"}}}`), snapshot.WaitNone, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, err := pod.Read(labelled(c.status), "")
			if err != nil {
				t.Fatal(err)
			}
			if seen.Pod.Wait != c.want || seen.Pod.WaitText != c.text {
				t.Errorf("wait = %v %q, want %v %q", seen.Pod.Wait, seen.Pod.WaitText, c.want, c.text)
			}
		})
	}
}

// A pod that does not name an executor is an error that names the pod and the label.
func TestReadRefusesForeignPods(t *testing.T) {
	for _, c := range []struct{ label, value, want string }{
		{pod.LabelExecutor, "", "no label retinue.dev/executor-id"},
		{pod.LabelExecutor, "EXECID", `retinue.dev/executor-id is "EXECID", not a number`},
		{pod.LabelExecutor, "0", "executors count from 1"},
		{pod.LabelExecutor, "-1", "not a number"},
		{pod.LabelExecutor, "18446744073709551616", "not a number"},
		{pod.LabelProfile, "4294967296", "retinue.dev/profile"},
		{pod.LabelProfile, "", "no label retinue.dev/profile"},
		{pod.LabelIncarnation, "x", "retinue.dev/incarnation"},
		{pod.LabelApp, "", "does not name an application"},
	} {
		p := labelled(`{"phase":"Running"}`)
		p.Labels[c.label] = c.value
		if c.value == "" {
			delete(p.Labels, c.label)
		}
		if _, err := pod.Read(p, ""); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p.Name) {
			t.Errorf("%s=%q: error = %v, want one with %q and the pod's name", c.label, c.value, err, c.want)
		}
	}
}

// However long a status is, what is kept of it is short, and the end of a log is what is kept of a log.
func TestReadBoundsTexts(t *testing.T) {
	p := labelled(`{"phase":"Failed"}`)
	p.Status.Message = strings.Repeat("é", 100_000)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "executor", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: strings.Repeat("é", 100_000) + "panic: the end"},
	}}}
	seen, err := pod.Read(p, "")
	if err != nil {
		t.Fatal(err)
	}
	m := seen.Pod.Exit.Message
	if len(m) > 4<<10 || !utf8.ValidString(m) || !strings.HasSuffix(m, "panic: the end") || !strings.HasPrefix(m, "é") {
		t.Errorf("message of %d bytes, valid %v, ends in %q", len(m), utf8.ValidString(m), m[len(m)-20:])
	}
}

// Whatever is in a pod, reading it gives a small observation or an error.
func FuzzRead(f *testing.F) {
	f.Add("wordcount", "7", "2", "1", "Running", "executor", "Error", "last words", "42", int32(1), uint8(3))
	f.Add("a", "EXECID", "0", "1", "Pending", "side", "ImagePullBackOff", "", "x", int32(0), uint8(255))
	f.Fuzz(func(t *testing.T, app, executor, profile, incarnation, phase, container, reason, text, version string, code int32, bits uint8) {
		p := labelled("{}")
		p.Labels = map[string]string{pod.LabelApp: app, pod.LabelExecutor: executor, pod.LabelProfile: profile, pod.LabelIncarnation: incarnation}
		p.Name, p.ResourceVersion, p.Spec.NodeName = text, version, reason
		p.Status = corev1.PodStatus{Phase: corev1.PodPhase(phase), Reason: reason, Message: text}
		has := func(bit uint8) bool { return bits&(1<<bit) != 0 }
		if has(0) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container, RestartCount: code, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: text}},
			})
		}
		if has(1) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: text, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: text}},
			})
		}
		if has(2) {
			p.DeletionTimestamp = &metav1.Time{}
		}
		if has(3) {
			p.Spec.Containers = nil
		}
		if has(4) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: text},
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: text},
			}
		}
		if has(5) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: container}}
		}
		seen, err := pod.Read(p, container)
		if err != nil {
			if len(err.Error()) > 2<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		o := seen.Pod
		if o.ID == 0 || seen.App == "" {
			t.Errorf("read as nobody's: %+v", seen)
		}
		if o.Phase == snapshot.Requested || o.Phase >= snapshot.Deleted {
			t.Errorf("phase %v is not for a pod to say", o.Phase)
		}
		for _, s := range []string{o.Name, o.UID, o.WaitText, o.Node, o.Zone, o.Capacity, o.Exit.Reason, o.Exit.Message} {
			if len(s) > 4<<10 || !utf8.ValidString(s) {
				t.Errorf("a text of %d bytes, valid %v", len(s), utf8.ValidString(s))
			}
		}
	})
}
