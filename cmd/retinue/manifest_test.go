package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// Every form in which a field may be written arrives as what it means.
func TestManifest(t *testing.T) {
	got, err := readManifest("app.yaml", []byte(`
# comments, and more than one document
id: web
namespace: prod
maxLifetime: 100
labels: {tier: front, number: 1}
policy:
  policy: elastic
  settings: {idle: 1m, steps: [1, 2]}
profiles:
  - name: small
    slots: 2
    idleTimeout: 1m30s
    releaseIdle: 0s
    cpu: 1
    command: [sh, -c, "sleep 1"]
    env: {ZONE: eu, EMPTY: , YES: yes}
    dynamicAllocation: {enabled: true, ratio: 0.5, backlogTimeout: 1s}
    max:
  - name: large
    env:
      - name: ZONE
        value: us
    podTemplate:
      spec:
        containers: [{name: executor, image: "x:1"}]
---
# nothing here
---
id: second
profiles: [{podTemplate: '{"spec":{}}'}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []*apiv1.ApplicationSpec{
		{
			Id: "web", Namespace: "prod", MaxLifetime: 100, Labels: map[string]string{"tier": "front", "number": "1"},
			Policy: &apiv1.PolicyBinding{Policy: "elastic", Settings: `{"idle":"1m","steps":[1,2]}`},
			Profiles: []*apiv1.ProfileSpec{
				{
					Name: "small", Slots: 2, IdleTimeout: durationpb.New(90 * time.Second), ReleaseIdle: durationpb.New(0), Cpu: "1",
					Command: []string{"sh", "-c", "sleep 1"},
					Env:     []*apiv1.EnvVar{{Name: "ZONE", Value: "eu"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"}},
					DynamicAllocation: &apiv1.DynamicAllocation{
						Enabled: true, Ratio: 0.5, BacklogTimeout: durationpb.New(time.Second),
					},
				},
				{
					Name: "large", Env: []*apiv1.EnvVar{{Name: "ZONE", Value: "us"}},
					PodTemplate: `{"spec":{"containers":[{"image":"x:1","name":"executor"}]}}`,
				},
			},
		},
		{Id: "second", Profiles: []*apiv1.ProfileSpec{{PodTemplate: `{"spec":{}}`}}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("read wrongly (-want +got):\n%s", diff)
	}
}

// Whatever is wrong with a manifest is told with its line, and what to do if that can be known.
func TestManifestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":          {"id: a\n\tb: c\n", []string{"f.yaml:2: found a tab character that violates indentation: this is not YAML"}},
		"half YAML":        {"id: a\nprofiles: [{name: x\n", []string{"f.yaml:1: did not find expected ',' or '}': this is not YAML"}},
		"nothing":          {"# only a comment\n", []string{"f.yaml: there is no application in it"}},
		"a list":           {"- id: a\n", []string{"f.yaml:1: this is a list, and must be a map with the keys id, namespace, profiles,"}},
		"unknown key":      {"id: a\nprofile: []\n", []string{`f.yaml:2: there is no key "profile"; did you mean "profiles"?`}},
		"snake case":       {"max_pending: 1\n", []string{`f.yaml:1: there is no key "max_pending"; did you mean "maxPending"?`}},
		"deep unknown key": {"profiles:\n- name: x\n- name: y\n  solts: 2\n", []string{`f.yaml:4: profiles[1]: there is no key "solts"; did you mean "slots"?`}},
		"far key":          {"policy: {colour: red}\n", []string{`f.yaml:1: policy: there is no key "colour"; there are policy, settings`}},
		"twice":            {"id: a\nmode: follow\nid: b\n", []string{"f.yaml:3: the key \"id\" is in line 1 already"}},
		"twice in env":     {"profiles:\n- env:\n    A: 1\n    A: 2\n", []string{"f.yaml:4: profiles[0].env: the key \"A\" is in line 3 already"}},
		"bare duration":    {"profiles: [{idleTimeout: 10}]\n", []string{`f.yaml:1: profiles[0].idleTimeout: "10" is not a duration: write a number with a unit, such as 10s or 1m30s`}},
		"zero duration":    {"profiles: [{idleTimeout: 0}]\n", []string{`"0" is not a duration`}},
		"list duration":    {"profiles: [{idleTimeout: [10s]}]\n", []string{`a list is not a duration`}},
		"word for number":  {"profiles:\n- slots: many\n", []string{`f.yaml:2: profiles[0].slots: "many" is not a whole number from 0 to 4294967295`}},
		"negative number":  {"maxPending: -1\n", []string{`f.yaml:1: maxPending: "-1" is not a whole number`}},
		"too large":        {"maxPending: 4294967296\n", []string{`maxPending: "4294967296" is not a whole number from 0 to 4294967295`}},
		"fraction":         {"maxPending: 1.5\n", []string{`"1.5" is not a whole number`}},
		"word for truth":   {"profiles: [{dynamicAllocation: {enabled: perhaps}}]\n", []string{`profiles[0].dynamicAllocation.enabled: "perhaps" is not true or false`}},
		"map for text":     {"id: {a: b}\n", []string{"f.yaml:1: id: a map is not a text"}},
		"text for map":     {"policy: direct\n", []string{`f.yaml:1: policy: this is the value "direct", and must be a map with the keys policy, settings`}},
		"text for list":    {"profiles: [{command: ls -l}]\n", []string{`profiles[0].command: this is the value "ls -l", and must be a list`}},
		"list in env":      {"profiles: [{env: {A: [1]}}]\n", []string{"profiles[0].env.A: this is a list, and must be a text"}},
		"template no JSON": {"profiles: [{podTemplate: {spec: {a: .nan}}}]\n", []string{"profiles[0].podTemplate: this cannot be written as JSON"}},
		"everything at once": {"ids: a\nmaxPending: x\n---\nmods: follow\n", []string{
			`f.yaml:1: there is no key "ids"; did you mean "id"?`, `f.yaml:2: maxPending:`, `f.yaml:4: there is no key "mods"; did you mean "mode"?`,
		}},
		"control bytes in paths": {"labels: {\"\\e[2J\": [1]}\n\"\\e\": 1\n\"\\e\": 2\n", []string{"labels.[2J: this is a list", "f.yaml:3: the key \"\\x1b\" is in line 2"}},
		"control bytes":          {"\"a\\e[2Jb\": 1\nid: \"\\e[2J\"\nmaxPending: \"\\a\"\n", []string{`there is no key "a\x1b[2Jb"`, `maxPending: "" is not`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readManifest("f.yaml", []byte(c.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the error carries control bytes: %q", err)
			}
		})
	}
}

// An alias stands for what it points to, however often, and one that holds itself ends the reading with an error and not never.
func TestManifestAliases(t *testing.T) {
	got, err := readManifest("f.yaml", []byte("id: a\nprofiles:\n- &p {name: x, env: {A: &v b}}\n- *p\n- name: y\n  env: {B: *v}\n"))
	if err != nil {
		t.Fatal(err)
	}
	x := &apiv1.ProfileSpec{Name: "x", Env: []*apiv1.EnvVar{{Name: "A", Value: "b"}}}
	y := &apiv1.ProfileSpec{Name: "y", Env: []*apiv1.EnvVar{{Name: "B", Value: "b"}}}
	if diff := cmp.Diff([]*apiv1.ProfileSpec{x, x, y}, got[0].GetProfiles(), protocmp.Transform()); diff != "" {
		t.Errorf("read wrongly (-want +got):\n%s", diff)
	}
	if _, err := readManifest("f.yaml", []byte("profiles:\n- podTemplate: &a {spec: *a}\n")); err == nil {
		t.Error("an alias inside of itself was accepted")
	}
}

// Every field that a specification has can be written, so that none is forgotten when one is added.
func TestManifestKnowsEveryKindOfField(t *testing.T) {
	var look func(m protoreflect.MessageDescriptor)
	look = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			switch {
			case f.IsMap():
				if f.MapKey().Kind() != protoreflect.StringKind || f.MapValue().Kind() != protoreflect.StringKind {
					t.Errorf("%s is a map of something else than texts", f.FullName())
				}
			case isDuration(f):
			case f.Kind() == protoreflect.MessageKind:
				look(f.Message())
			case wanted[f.Kind()] == "":
				t.Errorf("%s is of kind %v, which a manifest cannot hold", f.FullName(), f.Kind())
			}
		}
	}
	look((&apiv1.ApplicationSpec{}).ProtoReflect().Descriptor())
}

// Whatever a file holds, reading it ends, without a panic, in applications or an error; and what was read is valid for the wire.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		"id: a\nprofiles: [{name: x, idleTimeout: 1s}]\n", "--- \n...\n---\n- 1", "id: &a [*a]", "labels: {? [x] : y}", "id: !!binary aGk=", "\xff\xfe", "policy: {settings: {1: 2}}",
		"profiles: [{podTemplate: {<<: {a: b}}}]", "id: \"\\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		specs, err := readManifest("f.yaml", content)
		if err != nil {
			return
		}
		if len(specs) == 0 {
			t.Error("neither an application nor an error")
		}
		for _, spec := range specs {
			if _, err := proto.Marshal(spec); err != nil {
				t.Errorf("what was read cannot be sent: %v", err)
			}
		}
	})
}
