package pod_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/pod"
)

// us is the daemon whose pods are ours.
var us = pod.NewOwner([32]byte{1})

func spec() pod.Spec {
	return pod.Spec{
		Application: "wordcount",
		Namespace:   "batch",
		Incarnation: 3,
		Owner:       us,
		Labels:      map[string]string{"team": "search"},
		Annotations: map[string]string{"example.com/note": "any text at all"},
		Address:     "retinued.batch:7077",
		Program:     "/usr/bin/retinue-executor",
		CAFile:      "/etc/retinue/ca.crt",
		Lease:       90 * time.Second,
		Profiles: []pod.Profile{{
			ID: 0, Name: "small", Image: "registry/executor:1", CPU: "500m", CPULimit: "2", Memory: "1Gi", Slots: 4,
			Env: map[string]string{"B": "2", "A": "$(RETINUE_POD_NAME)"}, Resources: map[string]string{"nvidia.com/gpu": "1"},
		}},
	}
}

func instance() pod.Instance {
	return pod.Instance{Executor: 17, Profile: 0, Token: "secret"}
}

func template(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	p, err := pod.ParseTemplate([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const sidecarTemplate = `
metadata:
  labels: {team: data, tier: batch}
spec:
  restartPolicy: Never
  nodeSelector: {disk: fast}
  terminationGracePeriodSeconds: 120
  securityContext: {runAsNonRoot: false}
  containers:
  - name: logger
    image: registry/logger:1
  - name: executor
    image: registry/base:1
    command: [/entry]
    args: [--verbose]
    env:
    - {name: A, value: old}
    - {name: C, value: kept}
    resources: {limits: {cpu: "4"}}
`

func build(t *testing.T, s pod.Spec, in pod.Instance) *corev1.Pod {
	t.Helper()
	p, err := pod.Build(s, in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The name holds application, incarnation and number, and nothing else.
func TestName(t *testing.T) {
	if got, want := pod.Name("wordcount", 3, 17), "wordcount-i3-exec-17"; got != want {
		t.Errorf("Name = %q, want %q", got, want)
	}
}

// A pod without a template has all that an executor needs, and no more rights than it needs.
func TestBuildWithoutTemplate(t *testing.T) {
	p := build(t, spec(), instance())
	wantLabels := map[string]string{
		"team":                         "search",
		"app.kubernetes.io/name":       "retinue-executor",
		"app.kubernetes.io/instance":   "wordcount",
		"app.kubernetes.io/component":  "executor",
		"app.kubernetes.io/part-of":    "retinue",
		"app.kubernetes.io/managed-by": "retinue",
		"retinue.dev/app":              "wordcount",
		"retinue.dev/executor-id":      "17",
		"retinue.dev/profile":          "0",
		"retinue.dev/incarnation":      "3",
		"retinue.dev/owner":            us.Name(),
	}
	if diff := cmp.Diff(wantLabels, p.Labels); diff != "" {
		t.Errorf("labels differ (-want +got):\n%s", diff)
	}
	if p.Name != "wordcount-i3-exec-17" || p.Namespace != "batch" {
		t.Errorf("identity = %s/%s", p.Namespace, p.Name)
	}
	c := p.Spec.Containers[0]
	if diff := cmp.Diff([]string{"/usr/bin/retinue-executor"}, c.Command); diff != "" || c.Image != "registry/executor:1" {
		t.Errorf("image %q, command differs (-want +got):\n%s", c.Image, diff)
	}
	if got := c.Resources.Limits.Memory().String(); got != "1Gi" {
		t.Errorf("memory limit = %s, want the request", got)
	}
	gpu := c.Resources.Limits["nvidia.com/gpu"]
	if c.Resources.Limits.Cpu().String() != "2" || c.Resources.Requests.Cpu().String() != "500m" || gpu.String() != "1" {
		t.Errorf("resources = %v", c.Resources)
	}
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever || *p.Spec.TerminationGracePeriodSeconds != 30 || *p.Spec.AutomountServiceAccountToken {
		t.Errorf("restart %s, grace %d, token %v", p.Spec.RestartPolicy, *p.Spec.TerminationGracePeriodSeconds, *p.Spec.AutomountServiceAccountToken)
	}
	if !*p.Spec.SecurityContext.RunAsNonRoot || *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" ||
		p.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod does not meet the restricted standard: %v %v", p.Spec.SecurityContext, c.SecurityContext)
	}
}

// The executor program finds in its environment all that it reads, before the user's variables, which may refer to it.
func TestBuildEnvironment(t *testing.T) {
	var got []string
	for _, v := range build(t, spec(), instance()).Spec.Containers[0].Env {
		value := v.Value
		if v.ValueFrom != nil {
			value = "field " + v.ValueFrom.FieldRef.FieldPath
		}
		got = append(got, v.Name+"="+value)
	}
	want := []string{
		"RETINUE_ADDRESS=retinued.batch:7077", "RETINUE_APPLICATION=wordcount", "RETINUE_NAMESPACE=batch", "RETINUE_EXECUTOR_ID=17",
		"RETINUE_TOKEN=secret", "RETINUE_SLOTS=4", "RETINUE_POD_NAME=field metadata.name", "RETINUE_POD_UID=field metadata.uid",
		"RETINUE_LEASE=1m30s", "RETINUE_CA_FILE=/etc/retinue/ca.crt", "A=$(RETINUE_POD_NAME)", "B=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
}

// The template's word stands where it may, the profile's wins over it, and ours over both.
func TestBuildMergesTemplate(t *testing.T) {
	s := spec()
	s.Profiles[0].Template = template(t, sidecarTemplate)
	s.Profiles[0].CPULimit = ""
	before := s.Profiles[0].Template.DeepCopy()
	p := build(t, s, instance())
	if diff := cmp.Diff(before, s.Profiles[0].Template); diff != "" {
		t.Errorf("the template was changed (-before +after):\n%s", diff)
	}
	own := p.Spec.Containers[1]
	if own.Name != "executor" || own.Image != "registry/executor:1" || own.Command[0] != "/entry" || own.Args[0] != "--verbose" {
		t.Errorf("container = %s %s %v %v", own.Name, own.Image, own.Command, own.Args)
	}
	var env []string
	for _, v := range own.Env {
		if !strings.HasPrefix(v.Name, "RETINUE_") {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	if diff := cmp.Diff([]string{"A=$(RETINUE_POD_NAME)", "C=kept", "B=2"}, env); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
	if p.Labels["team"] != "search" || p.Labels["tier"] != "batch" {
		t.Errorf("labels = %v", p.Labels)
	}
	if *p.Spec.TerminationGracePeriodSeconds != 120 || *p.Spec.SecurityContext.RunAsNonRoot || p.Spec.NodeSelector["disk"] != "fast" {
		t.Errorf("the template's word does not stand: %v", p.Spec)
	}
	if p.Spec.Containers[0].Image != "registry/logger:1" || len(p.Spec.Containers[0].Env) != 0 {
		t.Errorf("the sidecar was changed: %v", p.Spec.Containers[0])
	}
	if own.Resources.Limits.Cpu().String() != "4" || own.Resources.Requests.Cpu().String() != "500m" {
		t.Errorf("resources = %v", own.Resources)
	}
}

// The executor's container is found by name, and is the first where no name fits.
func TestBuildFindsContainer(t *testing.T) {
	for _, c := range []struct{ container, template, want string }{
		{"logger", sidecarTemplate, "logger"},
		{"", sidecarTemplate, "executor"},
		{"worker", sidecarTemplate, "logger"},
		{"", "spec: {containers: [{name: main, image: i}]}", "main"},
		{"worker", "metadata: {labels: {a: b}}", "worker"},
	} {
		s := spec()
		s.Profiles[0].Template, s.Profiles[0].Container = template(t, c.template), c.container
		p := build(t, s, instance())
		if got := p.Annotations[pod.AnnotationContainer]; got != c.want {
			t.Errorf("container %q in %q: the executor is %q, want %q", c.container, c.template, got, c.want)
		}
	}
}

// Hints are preferences, beside those of the template.
func TestBuildPrefersHints(t *testing.T) {
	in := instance()
	in.Zone, in.Node, in.Capacity = "z1", "n1", "spot"
	terms := build(t, spec(), in).Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	var got []string
	for _, term := range terms {
		got = append(got, term.Preference.MatchExpressions[0].Key+"="+term.Preference.MatchExpressions[0].Values[0])
	}
	want := []string{"kubernetes.io/hostname=n1", "topology.kubernetes.io/zone=z1", "karpenter.sh/capacity-type=spot"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("preferences differ (-want +got):\n%s", diff)
	}
}

// The same input gives the same pod, down to the order of everything.
func TestBuildIsDeterministic(t *testing.T) {
	s := spec()
	s.Profiles[0].Template = template(t, sidecarTemplate)
	first := build(t, s, instance())
	for range 50 {
		if diff := cmp.Diff(first, build(t, s, instance())); diff != "" {
			t.Fatalf("built again, the pod differs (-first +again):\n%s", diff)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	in := instance()
	in.Profile = 9
	if _, err := pod.Build(spec(), in); err == nil || !strings.Contains(err.Error(), "profile 9 is unknown") {
		t.Errorf("unknown profile: %v", err)
	}
	in = instance()
	in.Name = strings.Repeat("a", 64)
	if _, err := pod.Build(spec(), in); err == nil || !strings.Contains(err.Error(), "not valid") {
		t.Errorf("long name: %v", err)
	}
	s := spec()
	s.Profiles[0].Memory = "lots"
	if _, err := pod.Build(s, instance()); err == nil || !strings.Contains(err.Error(), `memory "lots"`) {
		t.Errorf("bad quantity: %v", err)
	}
}

// What was built is read back as it was meant.
func TestReadKnowsWhatBuildMade(t *testing.T) {
	p := build(t, spec(), instance())
	p.UID, p.ResourceVersion, p.Status.Phase = "u-1", "42", corev1.PodPending
	seen, err := pod.Read(p, "")
	if err != nil {
		t.Fatal(err)
	}
	o := seen.Pod
	if seen.App != "wordcount" || seen.Incarnation != 3 || o.ID != 17 || o.Name != p.Name || o.UID != "u-1" || o.Version != 42 || o.Deleting {
		t.Errorf("read %+v", seen)
	}
}

func TestParseTemplateIsStrict(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown field", `{"spec":{"contaners":[]}}`, `unknown field "spec.contaners"`},
		{"twice", `{"spec":{"nodeName":"a","nodeName":"b"}}`, `"nodeName"`},
		{"wrong type", `{"spec":{"containers":"x"}}`, "containers"},
		{"other kind", `{"apiVersion":"v1","kind":"Service"}`, "v1 Service, not a Pod"},
		{"unknown kind", `{"apiVersion":"v9","kind":"Pod"}`, "v9"},
		{"empty", " \n", "it is empty"},
		{"not yaml", "{", "reading pod template"},
		{"huge", strings.Repeat("#", pod.MaxTemplate+1), "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := pod.ParseTemplate([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}
