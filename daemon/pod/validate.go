package pod

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const (
	// MaxApplication is the most bytes of an application's id, so that the names of its executors stay under MaxName.
	MaxApplication = 40
	// MaxName is the most bytes of a pod's name: the host name is made of it, and Linux cuts that off there.
	MaxName = validation.DNS1123LabelMaxLength

	maxSlots       = 10_000
	maxAnnotations = 200 << 10                // bytes; the cluster allows 256 KiB, and some of them are ours
	farExecutor    = snapshot.ID(999_999_999) // the longest id that a valid application can be sure to name
)

// Validate reports everything that would keep executor pods of a Spec from being built, or from being accepted by any cluster. Each line of the
// error begins with the path of a field. What only a given cluster refuses (quotas, admission rules) is not known here.
func Validate(spec Spec) error {
	var r report
	r.application(&spec)
	r.metadata("labels", spec.Labels, true)
	r.metadata("annotations", spec.Annotations, false)
	if spec.Address == "" {
		r.addf("address", "is empty: executors would not find the daemon")
	}
	if spec.Lease < 0 || spec.Lease%time.Millisecond != 0 {
		r.addf("lease", "%v is not a whole number of milliseconds", spec.Lease)
	}
	if len(spec.Profiles) == 0 {
		r.addf("profiles", "there is none: an application needs at least one kind of executor")
	}
	ids, names := map[snapshot.Profile]bool{}, map[string]bool{}
	for i := range spec.Profiles {
		p := &spec.Profiles[i]
		path := fmt.Sprintf("profiles[%d]", i)
		if ids[p.ID] {
			r.addf(path+".id", "%d is taken by another profile", p.ID)
		}
		if names[p.Name] {
			r.addf(path+".name", "%q is taken by another profile", p.Name)
		}
		ids[p.ID], names[p.Name] = true, true
		r.profile(path, &spec, p)
	}
	return errors.Join(r...)
}

// report gathers what is wrong, in the order in which it was found.
type report []error

func (r *report) addf(path, format string, args ...any) {
	*r = append(*r, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}

// brief is the first problem without the regular expression that Kubernetes adds.
func brief(problems []string) string {
	text, _, _ := strings.Cut(problems[0], " (e.g.")
	return text
}

func (r *report) label(path, value string, limit int) {
	if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
		r.addf(path, "%q: %s", value, brief(problems))
	} else if len(value) > limit {
		r.addf(path, "%q has %d bytes, at most %d are allowed", value, len(value), limit)
	}
}

func (r *report) application(spec *Spec) {
	r.label("id", spec.Application, MaxApplication)
	r.label("namespace", spec.Namespace, validation.DNS1123LabelMaxLength)
	if name := Name(spec.Application, spec.Incarnation, farExecutor); len(spec.Application) <= MaxApplication && len(name) > MaxName {
		r.addf("id", "%q is too long for incarnation %d: executor names such as %s exceed %d bytes", spec.Application, spec.Incarnation, name, MaxName)
	}
}

// metadata checks labels or annotations that a user gave.
func (r *report) metadata(path string, given map[string]string, isLabel bool) {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(given)) {
		at := fmt.Sprintf("%s[%s]", path, key)
		size += len(key) + len(given[key])
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			r.addf(at, "%s", brief(problems))
			continue
		}
		if Reserved(key) {
			r.addf(at, "is reserved: retinued sets it")
		}
		if !isLabel {
			continue
		}
		if problems := validation.IsValidLabelValue(given[key]); len(problems) > 0 {
			r.addf(at, "%q: %s", given[key], brief(problems))
		}
	}
	if size > maxAnnotations {
		r.addf(path, "have %d bytes, at most %d are allowed", size, maxAnnotations)
	}
}

func (r *report) profile(path string, spec *Spec, p *Profile) {
	if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
		r.addf(path+".name", "%q: %s", p.Name, brief(problems))
	}
	if p.Slots == 0 || p.Slots > maxSlots {
		r.addf(path+".slots", "%d is not between 1 and %d", p.Slots, maxSlots)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		r.variable(fmt.Sprintf("%s.env[%s]", path, name), name)
	}
	bad := len(*r)
	if p.Container != "" {
		r.label(path+".container", p.Container, validation.DNS1123LabelMaxLength)
	}
	r.quantity(path+".cpu", p.CPU, false)
	r.quantity(path+".cpuLimit", p.CPULimit, false)
	r.quantity(path+".memory", p.Memory, true)
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		r.resource(fmt.Sprintf("%s.resources[%s]", path, name), name, p.Resources[name])
	}
	if p.Template != nil {
		r.template(path+".template", p.Template)
	}
	if len(*r) == bad { // with a broken quantity or name there is no pod to look at
		r.built(path, spec, p)
	}
}

func (r *report) variable(path, name string) {
	switch {
	case strings.HasPrefix(name, envPrefix):
		r.addf(path, "names that begin with %s are reserved: retinued sets them", envPrefix)
	case len(validation.IsEnvVarName(name)) > 0:
		r.addf(path, "%s", brief(validation.IsEnvVarName(name)))
	}
}

func (r *report) quantity(path, text string, bytes bool) {
	if text == "" {
		return
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		r.addf(path, "%q is not a quantity: write for example 500m or 2 for cpu, 512Mi or 4Gi for memory", text)
	case q.CmpInt64(math.MaxInt64) >= 0: // what is more is read as this much
		r.addf(path, "%q is more than a cluster can count", text)
	case q.Sign() <= 0:
		r.addf(path, "%q is not positive", text)
	case bytes && q.MilliValue()%1000 != 0: // 100m of memory is a tenth of a byte: the mistake that every cluster has seen
		r.addf(path, "%q is a fraction of a byte: %q is perhaps meant", text, strings.TrimSuffix(text, "m")+"Mi")
	}
}

func (r *report) resource(path, name, text string) {
	switch {
	case name == string(corev1.ResourceCPU) || name == string(corev1.ResourceMemory):
		r.addf(path, "has a field of its own: set %s there", name)
	case len(validation.IsQualifiedName(name)) > 0:
		r.addf(path, "%s", brief(validation.IsQualifiedName(name)))
	default:
		r.quantity(path, text, false)
	}
}

// template checks what a template may not say because it is ours to say.
func (r *report) template(path string, t *corev1.Pod) {
	r.metadata(path+".metadata.labels", t.Labels, true)
	r.metadata(path+".metadata.annotations", t.Annotations, false)
	meta := path + ".metadata"
	if t.Name != "" || t.GenerateName != "" {
		r.addf(meta+".name", "must be empty: retinued names executors")
	}
	if t.Namespace != "" {
		r.addf(meta+".namespace", "must be empty: the application's namespace is used")
	}
	if len(t.Finalizers) > 0 || len(t.OwnerReferences) > 0 {
		r.addf(meta, "finalizers and ownerReferences are not allowed: an executor's pod must be free to go")
	}
	if s := t.Spec; s.RestartPolicy != "" && s.RestartPolicy != corev1.RestartPolicyNever {
		r.addf(path+".spec.restartPolicy", "%s is not allowed: an executor that ends is replaced, not restarted", s.RestartPolicy)
	}
	if g := t.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		r.addf(path+".spec.terminationGracePeriodSeconds", "%d is negative", *g)
	}
	if t.Spec.NodeName != "" {
		r.addf(path+".spec.nodeName", "must be empty: it passes by the scheduler, use nodeSelector")
	}
	for i := range t.Spec.Containers {
		for j, v := range t.Spec.Containers[i].Env {
			r.variable(fmt.Sprintf("%s.spec.containers[%d].env[%d]", path, i, j), v.Name)
		}
	}
}

// built checks a pod as it would be made, so that what comes from the profile and what comes from the template are seen together.
func (r *report) built(path string, spec *Spec, p *Profile) {
	s := *spec
	s.Application, s.Incarnation, s.Profiles = "a", 0, []Profile{*p} // its own faults are reported already
	made, err := Build(s, Instance{Executor: 1, Profile: p.ID})
	if err != nil {
		r.addf(path, "%w", err)
		return
	}
	own := ownContainer(made, p.Container)
	if own.Image == "" {
		r.addf(path+".image", "is empty, and the template's container %q has none either", own.Name)
	}
	if len(own.Command) == 0 {
		r.addf(path+".command", "is empty, and neither the template nor the daemon's executor program gives one")
	}
	r.containers(path, made.Spec.InitContainers, made.Spec.Containers)
}

func (r *report) containers(path string, lists ...[]corev1.Container) {
	names := map[string]bool{}
	for _, list := range lists {
		for i := range list {
			c := &list[i]
			at := fmt.Sprintf("%s, container %q", path, c.Name)
			if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 {
				r.addf(at, "the name is not valid: %s", brief(problems))
			}
			if names[c.Name] {
				r.addf(at, "the name is there twice")
			}
			names[c.Name] = true
			r.withinLimits(at, &c.Resources)
		}
	}
}

func (r *report) withinLimits(path string, res *corev1.ResourceRequirements) {
	for _, name := range slices.Sorted(maps.Keys(res.Requests)) {
		request := res.Requests[name]
		if limit, ok := res.Limits[name]; ok && request.Cmp(limit) > 0 {
			r.addf(path, "%s request %s is more than its limit %s", name, request.String(), limit.String())
		}
	}
}
