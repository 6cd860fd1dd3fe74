package pod_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// A pod is its maker's as it was made, and nobody's, or another's, once somebody has written other names on it.
func TestWhose(t *testing.T) {
	them := pod.NewOwner([32]byte{2})
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string // part of the sentence; empty: ours
	}{
		"as made":              {func(*corev1.Pod) {}, ""},
		"lived in":             {func(p *corev1.Pod) { p.UID, p.Labels["team"], p.Status.Phase = "u", "other", corev1.PodFailed }, ""},
		"no label":             {func(p *corev1.Pod) { delete(p.Labels, pod.LabelOwner) }, "no label retinue.dev/owner"},
		"no labels":            {func(p *corev1.Pod) { p.Labels = nil }, "no label retinue.dev/owner"},
		"another daemon's":     {func(p *corev1.Pod) { p.Labels[pod.LabelOwner] = them.Name() }, "label retinue.dev/owner is " + them.Name()},
		"a copy":               {func(p *corev1.Pod) { p.Name += "0" }, "a copy"},
		"in another namespace": {func(p *corev1.Pod) { p.Namespace = "other" }, "a copy"},
		"another executor":     {func(p *corev1.Pod) { p.Labels[pod.LabelExecutor] = "18" }, "a copy"},
		"another application":  {func(p *corev1.Pod) { p.Labels[pod.LabelApp] = "other" }, "a copy"},
		"another life":         {func(p *corev1.Pod) { p.Labels[pod.LabelIncarnation] = "4" }, "a copy"},
		"no token":             {func(p *corev1.Pod) { p.Annotations = nil }, "a copy"},
		"a boundless label":    {func(p *corev1.Pod) { p.Labels[pod.LabelOwner] = strings.Repeat("x", 1<<20) }, "another daemon's"},
	} {
		t.Run(name, func(t *testing.T) {
			p := build(t, spec(), instance())
			c.change(p)
			got := us.Whose(p)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(got) > 1<<10 {
				t.Errorf("Whose = %q, want %q in it", got, c.want)
			}
			if them.Whose(p) == "" {
				t.Error("another daemon takes it for its own")
			}
		})
	}
}

// An owner's name is the same after a restart, fits into a label, and tells nothing of the secret; who has no secret owns nothing.
func TestOwnerName(t *testing.T) {
	again, other := pod.NewOwner([32]byte{1}), pod.NewOwner([32]byte{2})
	if us.Name() != again.Name() || us.Name() == other.Name() || len(us.Name()) != 16 {
		t.Errorf("names %s, %s, %s", us.Name(), again.Name(), other.Name())
	}
	s := spec()
	s.Owner = pod.Owner{}
	p := build(t, s, instance())
	if _, marked := p.Labels[pod.LabelOwner]; marked || (pod.Owner{}).Whose(p) == "" {
		t.Errorf("the pod of nobody is marked %v, and nobody's", p.Labels)
	}
	if p.Labels[pod.LabelOwner] = ""; (pod.Owner{}).Whose(p) == "" {
		t.Error("nobody owns a pod")
	}
}

// Of any two executors neither's pod passes for the other's: no token is good for two.
func TestTokensDiffer(t *testing.T) {
	some := rapid.SampledFrom([]string{"a", "a-i1-exec-1", "a-i1", "1"})
	rapid.Check(t, func(t *rapid.T) {
		draw := func() *corev1.Pod {
			s := spec()
			s.Application, s.Namespace = some.Draw(t, "application"), some.Draw(t, "namespace")
			s.Incarnation = rapid.Uint32Range(0, 12).Draw(t, "incarnation")
			p, err := pod.Build(s, pod.Instance{Executor: snapshot.ID(rapid.Uint64Range(1, 12).Draw(t, "executor"))})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p, q := draw(), draw()
		same := p.Name == q.Name && p.Namespace == q.Namespace
		p.Annotations[pod.AnnotationIntent] = q.Annotations[pod.AnnotationIntent]
		if (us.Whose(p) == "") != same {
			t.Fatalf("%s/%s with the token of %s/%s: %q", p.Namespace, p.Name, q.Namespace, q.Name, us.Whose(p))
		}
	})
}
