// Package spec turns what a client writes about an application into what the daemon keeps.
//
// It promises that everything wrong with a specification is reported at once, each with the path of its field, and that what it lets through
// can be carried out: the pods of every profile can be built.
package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/util/validation"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Application is an application as the daemon keeps it. It never changes.
type Application struct {
	Source  *apiv1.ApplicationSpec // what the client wrote, with id, namespace and profile names filled in
	Config  application.Config
	Pod     pod.Spec
	Binding Binding
}

// Incarnate returns the application as one of its lives: the number goes into the names of its executors, so that none is used twice.
func (a *Application) Incarnate(n uint32) *Application {
	one := *a
	one.Config.Incarnation, one.Pod.Incarnation = n, n
	return &one
}

// Binding says which policy decides.
type Binding struct {
	Policy   string // a name or sha256:DIGEST; empty: the daemon's default
	Settings string // a JSON object
}

// Defaults is what the daemon adds to every application.
type Defaults struct {
	Namespace  string   // of applications that name none
	Namespaces []string // those that the daemon serves
	Seed       uint64
	Config     application.Config // bounds that a specification cannot set
	Profile    application.Profile
	Pod        pod.Spec // address, program, CA file, lease
	Image      string   // of executors that name none
}

// MaxProfiles bounds the kinds of executor in one application.
const MaxProfiles = 64

// Parse checks src and fills in what it leaves out. It does not change src. The error, if any, names every field that is wrong.
func Parse(src *apiv1.ApplicationSpec, d Defaults) (*Application, error) {
	var p problems
	src = proto.CloneOf(src)
	cfg := d.Config
	cfg.ID, cfg.Namespace = src.GetId(), src.GetNamespace()
	if cfg.Namespace == "" {
		cfg.Namespace = d.Namespace
		src.Namespace = d.Namespace
	}
	cfg.Seed = d.Seed
	p.identity(cfg, d.Namespaces)
	cfg.Mode = p.mode(src.GetMode())
	cfg.MaxPending, cfg.MaxLifetime = src.GetMaxPending(), src.GetMaxLifetime()
	if n := src.GetMaxTaskAttempts(); n > 0 {
		cfg.MaxTaskAttempts = n
	}
	pods := d.Pod
	pods.Application, pods.Namespace = cfg.ID, cfg.Namespace
	pods.Labels, pods.Annotations = src.GetLabels(), src.GetAnnotations()
	cfg.Profiles, pods.Profiles = p.profiles(src.GetProfiles(), d)
	if len(p) == 0 {
		if err := pod.Validate(pods); err != nil {
			p = append(p, err)
		}
	}
	if len(p) > 0 {
		return nil, fmt.Errorf("application %q: %w", src.GetId(), errors.Join(p...))
	}
	binding := Binding{Policy: src.GetPolicy().GetPolicy(), Settings: src.GetPolicy().GetSettings()}
	return &Application{Source: src, Config: cfg, Pod: pods, Binding: binding}, nil
}

// problems gathers what is wrong.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (p *problems) identity(cfg application.Config, served []string) {
	for _, text := range validation.IsDNS1123Label(cfg.ID) {
		p.add("id", "%q is not valid: %s", cfg.ID, text)
	}
	if len(cfg.ID) > pod.MaxApplication {
		p.add("id", "%q has %d bytes, at most %d fit into the names of its executors", cfg.ID, len(cfg.ID), pod.MaxApplication)
	}
	if !slices.Contains(served, cfg.Namespace) {
		p.add("namespace", "%q is not served by this daemon, which serves %s", cfg.Namespace, strings.Join(served, ", "))
	}
}

func (p *problems) mode(name string) application.Mode {
	mode, err := ParseMode(name)
	if err != nil {
		p.add("mode", "%v", err)
	}
	if mode == 0 {
		return application.Follow
	}
	return mode
}

// ParseMode reads the name of a mode. Empty is 0.
func ParseMode(name string) (application.Mode, error) {
	switch name {
	case "":
		return 0, nil
	case "follow":
		return application.Follow, nil
	case "scale":
		return application.Scale, nil
	}
	return 0, fmt.Errorf("%q is not a mode: write follow or scale", name)
}

// ModeName is the name of a mode, as ParseMode reads it.
func ModeName(mode application.Mode) string {
	if mode == application.Scale {
		return "scale"
	}
	return "follow"
}

func (p *problems) profiles(list []*apiv1.ProfileSpec, d Defaults) ([]application.Profile, []pod.Profile) {
	if len(list) == 0 || len(list) > MaxProfiles {
		p.add("profiles", "there are %d, write 1 to %d", len(list), MaxProfiles)
		return nil, nil
	}
	profiles := make([]application.Profile, 0, len(list))
	pods := make([]pod.Profile, 0, len(list))
	names := make(map[string]bool, len(list))
	for i, src := range list {
		field := fmt.Sprintf("profiles[%d]", i)
		name := src.GetName()
		if name == "" {
			name = "default"
			src.Name = name
		}
		for _, text := range validation.IsDNS1123Label(name) {
			p.add(field+".name", "%q is not valid: %s", name, text)
		}
		if names[name] {
			p.add(field+".name", "%q is there twice", name)
		}
		names[name] = true
		id := snapshot.Profile(i)
		profiles = append(profiles, p.profile(field, id, name, src, d.Profile))
		pods = append(pods, p.podProfile(field, id, name, src, profiles[i].Slots, d))
	}
	return profiles, pods
}

func (p *problems) profile(field string, id snapshot.Profile, name string, src *apiv1.ProfileSpec, def application.Profile) application.Profile {
	out := def
	out.ID, out.Name = id, name
	out.Target, out.Min, out.Max = src.GetTarget(), src.GetMin(), src.GetMax()
	out.MaxPending = src.GetMaxPending()
	if n := src.GetSlots(); n > 0 {
		out.Slots = n
	}
	if n := src.GetBatchSize(); n > 0 {
		out.BatchSize = n
	}
	out.IdleTimeout = p.duration(field+".idleTimeout", src.GetIdleTimeout(), def.IdleTimeout)
	out.CreationTimeout = p.duration(field+".creationTimeout", src.GetCreationTimeout(), def.CreationTimeout)
	out.ReleaseIdle = p.duration(field+".releaseIdle", src.GetReleaseIdle(), def.ReleaseIdle)
	if dyn := src.GetDynamicAllocation(); dyn.GetEnabled() {
		out.Dynamic.Enabled = true
		out.Dynamic.Backlog = p.duration(field+".dynamicAllocation.backlogTimeout", dyn.GetBacklogTimeout(), def.Dynamic.Backlog)
		out.Dynamic.Sustained = p.duration(field+".dynamicAllocation.sustainedBacklogTimeout", dyn.GetSustainedBacklogTimeout(), out.Dynamic.Backlog)
		if ratio := dyn.GetRatio(); ratio != 0 {
			out.Dynamic.Ratio = ratio
		}
		if r := out.Dynamic.Ratio; !(r > 0 && r <= 1) {
			p.add(field+".dynamicAllocation.ratio", "%v is not above 0 and at most 1", r)
		}
		if out.Max == 0 {
			p.add(field+".max", "dynamic allocation needs an upper bound")
		}
	}
	if out.Max != 0 && out.Min > out.Max {
		p.add(field+".min", "%d is above max (%d)", out.Min, out.Max)
	}
	if out.Max != 0 && out.Target > out.Max {
		p.add(field+".target", "%d is above max (%d)", out.Target, out.Max)
	}
	out.Target = max(out.Target, out.Min)
	return out
}

func (p *problems) podProfile(field string, id snapshot.Profile, name string, src *apiv1.ProfileSpec, slots uint32, d Defaults) pod.Profile {
	out := pod.Profile{
		ID: id, Name: name, Slots: slots, Image: src.GetImage(), Command: src.GetCommand(),
		CPU: src.GetCpu(), CPULimit: src.GetCpuLimit(), Memory: src.GetMemory(),
	}
	if text := src.GetPodTemplate(); text != "" {
		template, err := pod.ParseTemplate([]byte(text))
		if err != nil {
			p.add(field+".podTemplate", "%v", err)
		}
		out.Template = template
	}
	if out.Image == "" && out.Template == nil {
		out.Image = d.Image
	}
	for i, env := range src.GetEnv() {
		if out.Env == nil {
			out.Env = make(map[string]string, len(src.GetEnv()))
		}
		if _, twice := out.Env[env.GetName()]; twice {
			p.add(fmt.Sprintf("%s.env[%d].name", field, i), "%q is there twice", env.GetName())
		}
		out.Env[env.GetName()] = env.GetValue()
	}
	return out
}

func (p *problems) duration(field string, d *durationpb.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	if err := d.CheckValid(); err != nil || d.AsDuration() < 0 {
		p.add(field, "%v is not a duration of zero or more", d.AsDuration())
		return def
	}
	return d.AsDuration()
}
