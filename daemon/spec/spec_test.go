package spec_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/spec"
)

func defaults() spec.Defaults {
	return spec.Defaults{
		Namespace: "default", Namespaces: []string{"default", "team"}, Image: "image",
		Config:  application.Config{MaxTaskAttempts: 4},
		Profile: application.Profile{Slots: 2, BatchSize: 20, IdleTimeout: time.Minute, CreationTimeout: time.Hour, Dynamic: application.Dynamic{Backlog: time.Second, Sustained: time.Second, Ratio: 1}},
		Pod:     pod.Spec{Address: "daemon:1", Program: "executor", Lease: time.Minute},
	}
}

// What a specification leaves out comes from the daemon, what it says wins, and the client's message is not touched.
func TestParseFillsIn(t *testing.T) {
	src := &apiv1.ApplicationSpec{
		Id: "web", MaxTaskAttempts: 2,
		Profiles: []*apiv1.ProfileSpec{
			{Min: 1, Max: 5, DynamicAllocation: &apiv1.DynamicAllocation{Enabled: true, BacklogTimeout: durationpb.New(3 * time.Second)}},
			{Name: "big", Slots: 8, Target: 2, Image: "other", IdleTimeout: durationpb.New(time.Second)},
		},
	}
	before := proto.CloneOf(src)
	got, err := spec.Parse(src, defaults())
	if err != nil {
		t.Fatal(err)
	}
	got = got.Incarnate(3)
	if !proto.Equal(src, before) {
		t.Error("the client's message was changed")
	}
	cfg := got.Config
	if cfg.Namespace != "default" || cfg.Incarnation != 3 || cfg.Mode != application.Follow || cfg.MaxTaskAttempts != 2 {
		t.Errorf("got %+v", cfg)
	}
	small, big := cfg.Profiles[0], cfg.Profiles[1]
	if small.Name != "default" || small.Slots != 2 || small.Target != 1 || small.Dynamic.Backlog != 3*time.Second || small.Dynamic.Sustained != 3*time.Second || small.IdleTimeout != time.Minute {
		t.Errorf("got %+v", small)
	}
	if big.ID != 1 || big.Slots != 8 || big.Target != 2 || big.Dynamic.Enabled || big.IdleTimeout != time.Second {
		t.Errorf("got %+v", big)
	}
	if got.Pod.Profiles[0].Image != "image" || got.Pod.Profiles[1].Image != "other" || got.Pod.Incarnation != 3 || got.Pod.Profiles[1].Slots != 8 {
		t.Errorf("got %+v", got.Pod)
	}
	if got.Source.GetNamespace() != "default" || got.Source.GetProfiles()[0].GetName() != "default" {
		t.Errorf("got %v", got.Source)
	}
}

// Everything that is wrong is named, with its field, at once.
func TestParseNamesEverythingThatIsWrong(t *testing.T) {
	_, err := spec.Parse(&apiv1.ApplicationSpec{
		Id: "Web!", Namespace: "kube-system", Mode: "sideways",
		Profiles: []*apiv1.ProfileSpec{
			{Name: "a", Min: 3, Max: 2},
			{Name: "a", Target: 9, Max: 8, IdleTimeout: durationpb.New(-time.Second)},
			{Name: "B", DynamicAllocation: &apiv1.DynamicAllocation{Enabled: true, Ratio: 2}, Env: []*apiv1.EnvVar{{Name: "X"}, {Name: "X"}}},
			{Name: "c", PodTemplate: `{"spec":{"no":1}}`},
		},
	}, defaults())
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"id:", "namespace:", "mode:", "profiles[0].min:", "profiles[1].name:", "profiles[1].target:", "profiles[1].idleTimeout:",
		"profiles[2].name:", "profiles[2].max:", "profiles[2].dynamicAllocation.ratio:", "profiles[2].env[1].name:", "profiles[3].podTemplate:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// What cannot become a pod is refused when it is written, not when the first executor is created.
func TestParseRefusesWhatCannotBecomeAPod(t *testing.T) {
	for name, profile := range map[string]*apiv1.ProfileSpec{
		"request over limit": {Cpu: "2", CpuLimit: "1"},
		"no quantity":        {Memory: "lots"},
		"reserved variable":  {Env: []*apiv1.EnvVar{{Name: "RETINUE_TOKEN", Value: "x"}}},
	} {
		if _, err := spec.Parse(&apiv1.ApplicationSpec{Id: "web", Profiles: []*apiv1.ProfileSpec{profile}}, defaults()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := spec.Parse(&apiv1.ApplicationSpec{Id: strings.Repeat("w", pod.MaxApplication+1), Profiles: []*apiv1.ProfileSpec{{}}}, defaults()); err == nil {
		t.Error("a name too long for its executors was accepted")
	}
}
