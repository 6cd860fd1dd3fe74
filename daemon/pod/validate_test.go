package pod_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

func TestValidateAccepts(t *testing.T) {
	s := spec()
	s.Profiles = append(s.Profiles, s.Profiles[0])
	s.Profiles[1].ID, s.Profiles[1].Name, s.Profiles[1].Template = 1, "large", template(t, sidecarTemplate)
	if err := pod.Validate(s); err != nil {
		t.Errorf("a good spec is refused:\n%v", err)
	}
}

// Each fault is told with the path of its field, and no other is made up.
func TestValidateNamesTheField(t *testing.T) {
	withTemplate := func(text string) func(*testing.T, *pod.Spec) {
		return func(t *testing.T, s *pod.Spec) { s.Profiles[0].Template = template(t, text) }
	}
	set := func(f func(*pod.Spec)) func(*testing.T, *pod.Spec) { return func(_ *testing.T, s *pod.Spec) { f(s) } }
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *pod.Spec)
		want  string
	}{
		{"id syntax", set(func(s *pod.Spec) { s.Application = "Word_Count" }), `id: "Word_Count": `},
		{"id too long", set(func(s *pod.Spec) { s.Application = strings.Repeat("a", 41) }), "id: "},
		{"name too long", set(func(s *pod.Spec) { s.Application, s.Incarnation = strings.Repeat("a", 40), 4_000_000_000 }), "exceed 63 bytes"},
		{"namespace", set(func(s *pod.Spec) { s.Namespace = "" }), "namespace: "},
		{"address", set(func(s *pod.Spec) { s.Address = "" }), "address: is empty"},
		{"lease", set(func(s *pod.Spec) { s.Lease = -1 }), "lease: "},
		{"no profile", set(func(s *pod.Spec) { s.Profiles = nil }), "profiles: there is none"},
		{"reserved label", set(func(s *pod.Spec) { s.Labels = map[string]string{"retinue.dev/app": "x"} }), "labels[retinue.dev/app]: is reserved"},
		{"managed-by", set(func(s *pod.Spec) { s.Labels = map[string]string{"app.kubernetes.io/managed-by": "x"} }), "is reserved"},
		{"label key", set(func(s *pod.Spec) { s.Labels = map[string]string{"a b": "x"} }), "labels[a b]: "},
		{"label value", set(func(s *pod.Spec) { s.Labels = map[string]string{"a": "x y"} }), `labels[a]: "x y"`},
		{"annotation key", set(func(s *pod.Spec) { s.Annotations = map[string]string{"/": "x"} }), "annotations[/]: "},
		{"annotation size", set(func(s *pod.Spec) { s.Annotations["a"] = strings.Repeat("x", 201<<10) }), "annotations: have"},
		{"profile name", set(func(s *pod.Spec) { s.Profiles[0].Name = "Big" }), "profiles[0].name: "},
		{"slots", set(func(s *pod.Spec) { s.Profiles[0].Slots = 0 }), "profiles[0].slots: 0"},
		{"env name", set(func(s *pod.Spec) { s.Profiles[0].Env = map[string]string{"a=b": ""} }), "profiles[0].env[a=b]: "},
		{"env ours", set(func(s *pod.Spec) { s.Profiles[0].Env = map[string]string{"RETINUE_TOKEN": ""} }), "profiles[0].env[RETINUE_TOKEN]: "},
		{"cpu", set(func(s *pod.Spec) { s.Profiles[0].CPU = "two" }), `profiles[0].cpu: "two" is not a quantity`},
		{"memory beyond counting", set(func(s *pod.Spec) { s.Profiles[0].Memory = "1e999" }), `profiles[0].memory: "1e999" is more than a cluster can count`},
		{"cpu negative", set(func(s *pod.Spec) { s.Profiles[0].CPU = "-1" }), "profiles[0].cpu: "},
		{"milli bytes", set(func(s *pod.Spec) { s.Profiles[0].Memory = "100m" }), `"100Mi" is perhaps meant`},
		{"request over limit", set(func(s *pod.Spec) { s.Profiles[0].CPU = "3" }), "cpu request 3 is more than its limit 2"},
		{"resource of its own", set(func(s *pod.Spec) { s.Profiles[0].Resources = map[string]string{"cpu": "1"} }), "profiles[0].resources[cpu]: "},
		{"no image", set(func(s *pod.Spec) { s.Profiles[0].Image = "" }), "profiles[0].image: is empty"},
		{"no command", set(func(s *pod.Spec) { s.Program = "" }), "profiles[0].command: is empty"},
		{"container", set(func(s *pod.Spec) { s.Profiles[0].Container = "A" }), "profiles[0].container: "},
		{"template label", withTemplate("metadata: {labels: {retinue.dev/app: x}}"), "profiles[0].template.metadata.labels[retinue.dev/app]: "},
		{"template name", withTemplate("metadata: {name: x}"), "profiles[0].template.metadata.name: "},
		{"template namespace", withTemplate("metadata: {namespace: x}"), "profiles[0].template.metadata.namespace: "},
		{"template finalizer", withTemplate("metadata: {finalizers: [a/b]}"), "profiles[0].template.metadata: "},
		{"template restart", withTemplate("spec: {restartPolicy: Always}"), "profiles[0].template.spec.restartPolicy: "},
		{"template grace", withTemplate("spec: {terminationGracePeriodSeconds: -1}"), "terminationGracePeriodSeconds: "},
		{"template node", withTemplate("spec: {nodeName: node-1}"), "profiles[0].template.spec.nodeName: "},
		{"template env", withTemplate("spec: {containers: [{name: c, env: [{name: RETINUE_X}]}]}"), "containers[0].env[0]: "},
		{"template limit", withTemplate("spec: {containers: [{name: executor}, {name: b, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}"), `container "b": cpu request 2 is more`},
		{"template twice", withTemplate("spec: {containers: [{name: executor}, {name: b}, {name: b}]}"), `container "b": the name is there twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec()
			c.spoil(t, &s)
			err := pod.Validate(s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error = %v, want one with %q", err, c.want)
			}
			if lines := strings.Count(err.Error(), "\n"); lines > 0 {
				t.Errorf("one fault gives several complaints:\n%v", err)
			}
		})
	}
}

// All faults are told at once, in a fixed order.
func TestValidateReportsEverything(t *testing.T) {
	s := spec()
	s.Address, s.Labels = "", map[string]string{"b b": "", "a a": "", "retinue.dev/x": ""}
	s.Profiles = append(s.Profiles, s.Profiles[0])
	err := pod.Validate(s)
	if err == nil {
		t.Fatal("accepted")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		path, _, _ := strings.Cut(line, ": ")
		got = append(got, path)
	}
	want := []string{"labels[a a]", "labels[b b]", "labels[retinue.dev/x]", "address", "profiles[1].id", "profiles[1].name"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("complaints differ (-want +got):\n%s", diff)
	}
}

// What Validate accepts, Build builds for any executor number that will ever be reached.
func TestWhatIsAcceptedIsBuilt(t *testing.T) {
	texts := func(samples ...string) *rapid.Generator[string] {
		return rapid.OneOf(rapid.SampledFrom(samples), rapid.StringN(0, 45, 50), rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,44}[a-z0-9])?`))
	}
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		s := spec()
		s.Application = texts("a", strings.Repeat("x", 40)).Draw(t, "id")
		s.Incarnation = rapid.Uint32().Draw(t, "incarnation")
		p := &s.Profiles[0]
		p.Name, p.Container = texts("small").Draw(t, "profile"), texts("", "executor").Draw(t, "container")
		p.CPU, p.Memory = texts("", "1", "250m", "-1", "1e3").Draw(t, "cpu"), texts("", "1Gi", "0", "1.5Gi").Draw(t, "memory")
		if pod.Validate(s) != nil {
			return
		}
		accepted++
		id := snapshot.ID(rapid.Uint64Range(1, 999_999_999).Draw(t, "executor"))
		made, err := pod.Build(s, pod.Instance{Executor: id})
		if err != nil {
			t.Fatalf("accepted, but not built: %v", err)
		}
		if seen, err := pod.Read(made, ""); err != nil || seen.App != s.Application || seen.Pod.ID != id || len(made.Name) > pod.MaxName {
			t.Fatalf("built as %s, read back as %+v, %v", made.Name, seen, err)
		}
	})
	if accepted == 0 {
		t.Error("no generated spec was accepted: the property shows nothing")
	}
}
