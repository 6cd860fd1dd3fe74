package model_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// refusal is an error and what it has to say.
type refusal struct {
	err    error
	code   int32
	reason metav1.StatusReason
	words  string
}

func (c refusal) check(t *testing.T) {
	t.Helper()
	status, ok := c.err.(apierrors.APIStatus)
	if !ok {
		t.Errorf("want %d %s %q, got %v", c.code, c.reason, c.words, c.err)
		return
	}
	got := status.Status()
	if got.Code != c.code || (c.reason != "" && got.Reason != c.reason) || !strings.Contains(got.Message, c.words) {
		t.Errorf("got %d %s %q, want %d %s %q", got.Code, got.Reason, got.Message, c.code, c.reason, c.words)
	}
}

// Each refusal has the code, the reason and the words of a real server.
func TestRefusals(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("there"))
	there := read(t, s, "there")
	stale := there.DeepCopy()
	stale.ResourceVersion = "1"
	other := there.DeepCopy()
	other.UID = "other"
	moved := there.DeepCopy()
	moved.Spec.Containers[0].Command = []string{"false"}
	versioned := newPod("new")
	versioned.ResourceVersion = "7"
	uid, old := types.UID("other"), "1"
	update := func(p *corev1.Pod) error {
		_, err := s.Update(t0, podAt("default", "there"), p, metav1.UpdateOptions{})
		return err
	}
	del := func(name string, o metav1.DeleteOptions) error {
		_, _, err := s.Delete(t0, podAt("default", name), o)
		return err
	}
	post := func(ref model.Ref, obj model.Object) error {
		_, err := s.Create(t0, ref, obj, metav1.CreateOptions{})
		return err
	}
	_, missing := s.Read(podAt("default", "nosuch"))
	_, unknown := s.Read(model.Ref{Resource: "gizmos", Name: "x"})
	for _, c := range []refusal{
		{missing, 404, metav1.StatusReasonNotFound, `pods "nosuch" not found`},
		{unknown, 404, metav1.StatusReasonNotFound, "the server could not find the requested resource"},
		{post(podAt("default", ""), newPod("there")), 409, metav1.StatusReasonAlreadyExists, `pods "there" already exists`},
		{post(podAt("nowhere", ""), newPod("x")), 404, metav1.StatusReasonNotFound, `namespaces "nowhere" not found`},
		{post(podAt("default", ""), versioned), 500, "", "resourceVersion should not be set on objects to be created"},
		{post(podAt("kube-system", ""), there), 400, metav1.StatusReasonBadRequest, "the namespace of the provided object does not match the namespace sent on the request"},
		{update(stale), 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on pods "there": the object has been modified; please apply your changes to the latest version and try again`},
		{update(other), 409, metav1.StatusReasonConflict, "Precondition failed: UID in precondition: other, UID in object meta: " + string(there.UID)},
		{update(newPod("elsewhere")), 400, metav1.StatusReasonBadRequest, "the name of the object (elsewhere) does not match the name on the URL (there)"},
		{update(moved), 422, metav1.StatusReasonInvalid, "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"},
		{del("nosuch", metav1.DeleteOptions{}), 404, metav1.StatusReasonNotFound, `pods "nosuch" not found`},
		{del("there", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}), 409, metav1.StatusReasonConflict, "the UID in the precondition (other) does not match the UID in record"},
		{del("there", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old}}), 409, metav1.StatusReasonConflict, "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record"},
		{s.Bind(t0, podAt("default", "nosuch"), "n1"), 404, metav1.StatusReasonNotFound, `pods "nosuch" not found`},
	} {
		c.check(t)
	}
	if after := read(t, s, "there"); after.ResourceVersion != there.ResourceVersion {
		t.Errorf("a refused write wrote: version %s, was %s", after.ResourceVersion, there.ResourceVersion)
	}
}

func TestRefusedReads(t *testing.T) {
	s := newServer(t, model.Config{})
	list := func(o metav1.ListOptions) error {
		_, err := s.List(podAt("default", ""), o)
		return err
	}
	for _, c := range []refusal{
		{list(metav1.ListOptions{FieldSelector: "spec.colour=red"}), 400, metav1.StatusReasonBadRequest, "field label not supported: spec.colour"},
		{list(metav1.ListOptions{LabelSelector: "a=b=c"}), 400, metav1.StatusReasonBadRequest, "found '='"},
		{list(metav1.ListOptions{ResourceVersion: "x"}), 400, metav1.StatusReasonBadRequest, "invalid resource version"},
		{list(metav1.ListOptions{ResourceVersion: "999999"}), 504, metav1.StatusReasonTimeout, "Too large resource version: 999999, current: "},
		{list(metav1.ListOptions{Continue: "?"}), 400, metav1.StatusReasonBadRequest, "continue key is not valid"},
		{list(metav1.ListOptions{ResourceVersionMatch: "Exact"}), 422, metav1.StatusReasonInvalid, "resourceVersionMatch is forbidden unless resourceVersion is provided"},
	} {
		c.check(t)
	}
}

func TestRefusedPatches(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("there"))
	before := s.Version()
	patch := func(kind types.PatchType, text string) error {
		_, err := s.Patch(t0, podAt("default", "there"), kind, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, c := range []refusal{
		{patch(types.ApplyYAMLPatchType, "{}"), 415, metav1.StatusReasonUnsupportedMediaType, "accepted media types include: application/json-patch+json, application/merge-patch+json"},
		{patch(types.MergePatchType, "nonsense"), 400, metav1.StatusReasonBadRequest, ""},
		{patch(types.JSONPatchType, `[{"op":"test","path":"/metadata/name","value":"x"}]`), 422, "", ""},
		{patch(types.JSONPatchType, `[{"op":"replace","path":"/metadata/name","value":"x"}]`), 400, metav1.StatusReasonBadRequest, "does not match the name on the URL"},
		{patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`), 409, metav1.StatusReasonConflict, "the object has been modified"},
	} {
		c.check(t)
	}
	if s.Version() != before {
		t.Errorf("a refused patch wrote")
	}
}

// An invalid pod is refused with the path of each bad field.
func TestInvalidPods(t *testing.T) {
	quantity := resource.MustParse
	for want, spoil := range map[string]func(*corev1.Pod){
		`metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain`:                             func(p *corev1.Pod) { p.Name = "Bad_Name" },
		`metadata.name: Required value: name or generateName is required`:                                      func(p *corev1.Pod) { p.Name = "" },
		`metadata.labels: Invalid value: "-x"`:                                                                 func(p *corev1.Pod) { p.Labels = map[string]string{"a": "-x"} },
		`spec.containers: Required value`:                                                                      func(p *corev1.Pod) { p.Spec.Containers = nil },
		`spec.containers[0].image: Required value`:                                                             func(p *corev1.Pod) { p.Spec.Containers[0].Image = "" },
		`spec.containers[0].name: Invalid value: "Main"`:                                                       func(p *corev1.Pod) { p.Spec.Containers[0].Name = "Main" },
		`spec.containers[1].name: Duplicate value: "main"`:                                                     func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) },
		`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"`: func(p *corev1.Pod) { p.Spec.RestartPolicy = "Sometimes" },
		`spec.containers[0].volumeMounts[0].name: Not found: "nosuch"`: func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "nosuch", MountPath: "/x"}}
		},
		`spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`: func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 70000}} },
		`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting fieldPath`: func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.x"}}}}
		},
		`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": quantity("2")}, Limits: corev1.ResourceList{"cpu": quantity("1")},
			}
		},
		`spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": quantity("-1")}
		},
		`spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources`: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": quantity("1")}
		},
		`spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive`: func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64) },
	} {
		s := newServer(t, model.Config{})
		pod := newPod("p")
		spoil(pod)
		_, err := s.Create(t0, podAt("default", ""), pod, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
			continue
		}
		field, _, _ := strings.Cut(want, ": ")
		causes := err.(apierrors.APIStatus).Status().Details.Causes
		if len(causes) == 0 || !strings.HasPrefix(causes[0].Field, field) {
			t.Errorf("causes %v do not name %s", causes, field)
		}
	}
}

// A pod on a node stays until its kubelet deletes it with no grace; a later delete may only shorten its time.
func TestGracefulDeletion(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("p"))
	bind(t, s, "p")
	seconds := func(n int64) metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: &n} }
	for i, step := range []struct {
		opts  metav1.DeleteOptions
		gone  bool
		grace int64
		at    time.Duration
		wrote uint64
	}{
		{opts: metav1.DeleteOptions{}, grace: 30, at: 30 * time.Second, wrote: 1},
		{opts: seconds(60), grace: 30, at: 30 * time.Second},
		{opts: metav1.DeleteOptions{}, grace: 30, at: 30 * time.Second},
		{opts: seconds(10), grace: 10, at: 10 * time.Second, wrote: 1},
		{opts: seconds(0), gone: true, at: 0, wrote: 2}, // the mark, then the removal
	} {
		before := s.Version()
		obj, gone, err := s.Delete(t0, podAt("default", "p"), step.opts)
		if err != nil || gone != step.gone || s.Version()-before != step.wrote {
			t.Fatalf("step %d: gone %v, %d writes, %v; want gone %v, %d writes", i, gone, s.Version()-before, err, step.gone, step.wrote)
		}
		pod := obj.(*corev1.Pod)
		if *pod.DeletionGracePeriodSeconds != step.grace || !pod.DeletionTimestamp.Time.Equal(t0.Add(step.at)) {
			t.Errorf("step %d: grace %d until %v, want %d until %v", i, *pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp, step.grace, t0.Add(step.at))
		}
	}
}

// A pod that no kubelet has, or that has ended, goes at once; a finalizer holds it until it is taken away.
func TestImmediateDeletion(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("unbound"))
	create(t, s, newPod("ended"))
	bind(t, s, "ended")
	status := podAt("default", "ended")
	status.Subresource = "status"
	if _, err := s.Patch(t0, status, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unbound", "ended"} {
		if _, gone, err := s.Delete(t0, podAt("default", name), metav1.DeleteOptions{}); !gone || err != nil {
			t.Errorf("%s: gone %v, %v, want gone at once", name, gone, err)
		}
	}
	held := newPod("held")
	held.Finalizers = []string{"example.com/held"}
	create(t, s, held)
	if _, gone, err := s.Delete(t0, podAt("default", "held"), metav1.DeleteOptions{}); gone || err != nil {
		t.Fatalf("held: gone %v, %v, want it to stay", gone, err)
	}
	if _, err := s.Patch(t0, podAt("default", "held"), types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(podAt("default", "held")); !apierrors.IsNotFound(err) {
		t.Errorf("after its last finalizer: %v, want it gone", err)
	}
}

// The status has its own door: an update changes it there and nowhere else, and nothing else changes there.
func TestStatusSubresource(t *testing.T) {
	s := newServer(t, model.Config{})
	create(t, s, newPod("p"))
	next := read(t, s, "p").DeepCopy()
	next.Status.Phase, next.Spec.Containers[0].Image = corev1.PodRunning, "other"
	next.Labels = map[string]string{"a": "b"}
	ref := podAt("default", "p")
	main, err := s.Update(t0, ref, next, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := main.(*corev1.Pod)
	if pod.Status.Phase != corev1.PodPending || pod.Spec.Containers[0].Image != "other" || pod.Generation != 2 {
		t.Errorf("update: phase %s, image %s, generation %d", pod.Status.Phase, pod.Spec.Containers[0].Image, pod.Generation)
	}
	next = pod.DeepCopy()
	next.Status.Phase, next.Spec.Containers[0].Image = corev1.PodRunning, "third"
	ref.Subresource = "status"
	obj, err := s.Update(t0, ref, next, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = obj.(*corev1.Pod)
	if pod.Status.Phase != corev1.PodRunning || pod.Spec.Containers[0].Image != "other" || pod.Generation != 2 {
		t.Errorf("status update: phase %s, image %s, generation %d", pod.Status.Phase, pod.Spec.Containers[0].Image, pod.Generation)
	}
	before := s.Version()
	if _, err := s.Update(t0, ref, pod, metav1.UpdateOptions{}); err != nil || s.Version() != before {
		t.Errorf("an update of nothing: %v, %d writes", err, s.Version()-before)
	}
}

// A new pod gets what a server gives it, whatever the client says about these fields.
func TestDefaults(t *testing.T) {
	s := newServer(t, model.Config{})
	in := newPod("p")
	in.UID, in.Status.Phase, in.Generation = "mine", corev1.PodRunning, 9
	in.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	pod := create(t, s, in)
	got := fmt.Sprint(pod.UID == "mine", pod.Status.Phase, pod.Generation, pod.Spec.RestartPolicy, *pod.Spec.TerminationGracePeriodSeconds,
		pod.Spec.Containers[0].ImagePullPolicy, pod.Spec.Containers[0].Resources.Requests.Cpu(), pod.Status.QOSClass, pod.CreationTimestamp.UTC())
	want := fmt.Sprint(false, "Pending", 1, "Always", 30, "Always", "1", "Guaranteed", t0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if in.UID != "mine" || in.Spec.RestartPolicy != "" {
		t.Error("the caller's object was changed")
	}
}

// A dry run answers like the write and writes nothing.
func TestDryRun(t *testing.T) {
	s := newServer(t, model.Config{})
	before := s.Version()
	obj, err := s.Create(t0, podAt("default", ""), newPod("p"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || obj.GetUID() == "" || s.Version() != before {
		t.Errorf("dry run: %v, %v, %d writes", obj, err, s.Version()-before)
	}
}

// A terminating namespace takes nothing new and is removed by Finalize.
func TestNamespaceDeletion(t *testing.T) {
	s := newServer(t, model.Config{})
	ref := model.Ref{Resource: "namespaces", Name: "default"}
	if _, gone, err := s.Delete(t0, ref, metav1.DeleteOptions{}); gone || err != nil {
		t.Fatalf("gone %v, %v", gone, err)
	}
	_, err := s.Create(t0, podAt("default", ""), newPod("p"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("creating in it: %v, want 403 with cause NamespaceTerminating", err)
	}
	if err := s.Finalize("default"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ref); !apierrors.IsNotFound(err) {
		t.Errorf("after Finalize: %v", err)
	}
}

// Admit has the last word, after validation.
func TestAdmit(t *testing.T) {
	refused := apierrors.NewGenericServerResponse(http.StatusForbidden, "create", schema.GroupResource{Resource: "pods"}, "p", "no", 0, false)
	s := newServer(t, model.Config{Admit: func(obj model.Object) error {
		if _, is := obj.(*corev1.Pod); is {
			return refused
		}
		return nil
	}})
	if _, err := s.Create(t0, podAt("default", ""), newPod("p"), metav1.CreateOptions{}); err != refused { //nolint:errorlint // the very same
		t.Errorf("got %v, want %v", err, refused)
	}
}
