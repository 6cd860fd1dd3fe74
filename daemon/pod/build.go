package pod

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Build makes the pod of one executor. Fields of the profile win over the template's; what identifies the executor wins over both. It fails if
// the profile is unknown, a quantity does not parse, or the name is not valid; a Spec that passed Validate has none of that.
func Build(spec Spec, in Instance) (*corev1.Pod, error) {
	at, ok := spec.profile(in.Profile)
	if !ok {
		return nil, fmt.Errorf("building the pod of executor %d: profile %d is unknown", in.Executor, in.Profile)
	}
	profile := &spec.Profiles[at]
	name := cmp.Or(in.Name, Name(spec.Application, spec.Incarnation, in.Executor))
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return nil, fmt.Errorf("building the pod of executor %d: its name %q is not valid: %s", in.Executor, name, brief(problems))
	}

	p := &corev1.Pod{}
	if profile.Template != nil {
		p = profile.Template.DeepCopy()
	}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Status = corev1.PodStatus{}
	own := ownContainer(p, profile.Container)
	p.ObjectMeta = identity(&spec, profile, in, &p.ObjectMeta, name, own.Name)
	spec.Owner.mark(p)
	shape(&p.Spec)
	if err := fill(own, &spec, profile, in); err != nil {
		return nil, fmt.Errorf("building the pod of executor %d of profile %q: %w", in.Executor, profile.Name, err)
	}
	prefer(&p.Spec, in)
	return p, nil
}

// identity is the pod's metadata: of the template's only labels and annotations remain.
func identity(spec *Spec, profile *Profile, in Instance, template *metav1.ObjectMeta, name, container string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: spec.Namespace,
		Labels: merged(template.Labels, spec.Labels, map[string]string{
			labelName:        "retinue-executor",
			labelInstance:    spec.Application,
			labelComponent:   "executor",
			labelPartOf:      "retinue",
			labelManagedBy:   "retinue",
			LabelApp:         spec.Application,
			LabelExecutor:    strconv.FormatUint(uint64(in.Executor), 10),
			LabelProfile:     strconv.FormatUint(uint64(profile.ID), 10),
			LabelIncarnation: strconv.FormatUint(uint64(spec.Incarnation), 10),
		}),
		Annotations: merged(template.Annotations, spec.Annotations, map[string]string{
			AnnotationProfileName: profile.Name,
			AnnotationContainer:   container,
		}),
	}
}

// merged is the union of maps; the later wins.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// ownContainer finds the executor's container in the pod, or adds one. The pointer is good until a container is added.
func ownContainer(p *corev1.Pod, name string) *corev1.Container {
	want := cmp.Or(name, DefaultContainer)
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == want {
			return &p.Spec.Containers[i]
		}
	}
	if len(p.Spec.Containers) == 0 {
		p.Spec.Containers = []corev1.Container{{Name: want}}
	}
	own := &p.Spec.Containers[0]
	own.Name = cmp.Or(own.Name, want)
	return own
}

// shape sets what every executor pod has. Where it is a matter of taste the template's word stands.
func shape(s *corev1.PodSpec) {
	s.RestartPolicy = corev1.RestartPolicyNever // an executor that ends is replaced under a new number, never revived under the old one
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = new(int64(DefaultGrace.Seconds()))
	}
	if s.AutomountServiceAccountToken == nil {
		s.AutomountServiceAccountToken = new(false) // tasks are not to hold rights in the cluster
	}
	if s.EnableServiceLinks == nil {
		s.EnableServiceLinks = new(false) // thousands of services make thousands of variables, and a slow start
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.SecurityContext.RunAsNonRoot == nil {
		s.SecurityContext.RunAsNonRoot = new(true)
	}
	if s.SecurityContext.SeccompProfile == nil {
		s.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
}

// fill makes a container the executor's.
func fill(c *corev1.Container, spec *Spec, profile *Profile, in Instance) error {
	c.Image = cmp.Or(profile.Image, c.Image)
	switch {
	case len(profile.Command) > 0:
		c.Command, c.Args = slices.Clone(profile.Command), nil
	case len(c.Command) == 0 && spec.Program != "":
		c.Command = []string{spec.Program}
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError // the last words of an executor that never registered
	}
	c.Env = environment(c.Env, spec, profile, in)
	secure(c)
	return reserve(&c.Resources, profile)
}

func secure(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.AllowPrivilegeEscalation == nil {
		c.SecurityContext.AllowPrivilegeEscalation = new(false)
	}
	if c.SecurityContext.Capabilities == nil {
		c.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
}

// reserve sets the resources that the profile names. Memory is not compressible, so its limit is its request: the scheduler's promise and the
// kernel's bound are one number.
func reserve(r *corev1.ResourceRequirements, profile *Profile) error {
	set := func(list *corev1.ResourceList, name corev1.ResourceName, text string) error {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("reading %s %q: %w", name, text, err)
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q
		return nil
	}
	both := func(name corev1.ResourceName, text string) error {
		if err := set(&r.Requests, name, text); err != nil {
			return err
		}
		return set(&r.Limits, name, text)
	}
	if profile.CPU != "" {
		if err := set(&r.Requests, corev1.ResourceCPU, profile.CPU); err != nil {
			return err
		}
	}
	if profile.CPULimit != "" {
		if err := set(&r.Limits, corev1.ResourceCPU, profile.CPULimit); err != nil {
			return err
		}
	}
	if profile.Memory != "" {
		if err := both(corev1.ResourceMemory, profile.Memory); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(profile.Resources)) {
		if err := both(corev1.ResourceName(name), profile.Resources[name]); err != nil {
			return err
		}
	}
	return nil
}

// prefer turns hints into preferences: a hint that cannot be met must not leave the executor without a node.
func prefer(s *corev1.PodSpec, in Instance) {
	terms := make([]corev1.PreferredSchedulingTerm, 0, 3)
	add := func(weight int32, label, value string) {
		if value == "" {
			return
		}
		terms = append(terms, corev1.PreferredSchedulingTerm{
			Weight: weight,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
			}}},
		})
	}
	add(100, labelHostname, in.Node)
	add(80, labelZone, in.Zone)
	add(60, labelCapacity, in.Capacity)
	if len(terms) == 0 {
		return
	}
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	if s.Affinity.NodeAffinity == nil {
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := s.Affinity.NodeAffinity
	node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution, terms...)
}
