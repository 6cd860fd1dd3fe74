package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePod checks what a real server checks of the parts that executors use. What it does not know it lets pass.
func validatePod(pod *corev1.Pod) field.ErrorList {
	at := field.NewPath("spec")
	spec := &pod.Spec
	volumes, errs := validateVolumes(spec.Volumes, at.Child("volumes"))
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	names := map[string]bool{}
	for i := range spec.Containers {
		errs = append(errs, validateContainer(&spec.Containers[i], at.Child("containers").Index(i), names, volumes)...)
	}
	for i := range spec.InitContainers {
		errs = append(errs, validateContainer(&spec.InitContainers[i], at.Child("initContainers").Index(i), names, volumes)...)
	}
	errs = append(errs, oneOf(at.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)...)
	errs = append(errs, oneOf(at.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	if g := spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		errs = append(errs, field.Invalid(at.Child("terminationGracePeriodSeconds"), *g, "must be greater than or equal to 0"))
	}
	if d := spec.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	errs = append(errs, label(at.Child("hostname"), spec.Hostname)...)
	errs = append(errs, label(at.Child("subdomain"), spec.Subdomain)...)
	if spec.NodeName != "" {
		errs = append(errs, invalid(at.Child("nodeName"), spec.NodeName, validation.IsDNS1123Subdomain(spec.NodeName))...)
	}
	return errs
}

func validateVolumes(volumes []corev1.Volume, at *field.Path) (map[string]bool, field.ErrorList) {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, v := range volumes {
		name := at.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(name, ""))
		case names[v.Name]:
			errs = append(errs, field.Duplicate(name, v.Name))
		default:
			errs = append(errs, label(name, v.Name)...)
		}
		names[v.Name] = true
	}
	return names, errs
}

func validateContainer(c *corev1.Container, at *field.Path, names, volumes map[string]bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case names[c.Name]:
		errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
	default:
		errs = append(errs, label(at.Child("name"), c.Name)...)
	}
	names[c.Name] = true
	if c.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile)...)
	errs = append(errs, validatePorts(c.Ports, at.Child("ports"))...)
	for i := range c.Env {
		errs = append(errs, validateEnv(&c.Env[i], at.Child("env").Index(i))...)
	}
	errs = append(errs, validateMounts(c.VolumeMounts, at.Child("volumeMounts"), volumes)...)
	errs = append(errs, oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy,
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	return append(errs, validateResources(c.Resources, at.Child("resources"))...)
}

func validatePorts(ports []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, p := range ports {
		if p.Name != "" {
			errs = append(errs, invalid(at.Index(i).Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(at.Index(i).Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Index(i).Child("containerPort"), ""))
			continue
		}
		errs = append(errs, invalid(at.Index(i).Child("containerPort"), p.ContainerPort, validation.IsValidPortNum(int(p.ContainerPort)))...)
	}
	return errs
}

func validateEnv(env *corev1.EnvVar, at *field.Path) field.ErrorList {
	if env.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	errs := invalid(at.Child("name"), env.Name, validation.IsRelaxedEnvVarName(env.Name))
	from := env.ValueFrom
	if from == nil {
		return errs
	}
	at = at.Child("valueFrom")
	sources := 0
	for _, given := range []bool{from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources == 0:
		return append(errs, field.Invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case env.Value != "":
		return append(errs, field.Invalid(at, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		return append(errs, field.Invalid(at, "", "may not have more than one field specified at a time"))
	case from.FieldRef != nil && !knownFieldPath(from.FieldRef.FieldPath):
		return append(errs, field.Invalid(at.Child("fieldRef", "fieldPath"), from.FieldRef.FieldPath,
			fmt.Sprintf("error converting fieldPath: field label not supported: %s", from.FieldRef.FieldPath)))
	}
	return errs
}

// knownFieldPath reports whether an environment variable may be taken from this field of a pod.
func knownFieldPath(path string) bool {
	switch path {
	case "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return true
	}
	return strings.HasSuffix(path, "']") &&
		(strings.HasPrefix(path, "metadata.labels['") || strings.HasPrefix(path, "metadata.annotations['"))
}

func validateMounts(mounts []corev1.VolumeMount, at *field.Path, volumes map[string]bool) field.ErrorList {
	var errs field.ErrorList
	paths := map[string]bool{}
	for i, m := range mounts {
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Index(i).Child("name"), ""))
		case !volumes[m.Name]:
			errs = append(errs, field.NotFound(at.Index(i).Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(at.Index(i).Child("mountPath"), ""))
		}
		if paths[m.MountPath] {
			errs = append(errs, field.Invalid(at.Index(i).Child("mountPath"), m.MountPath, "must be unique"))
		}
		paths[m.MountPath] = true
	}
	return errs
}

func validateResources(need corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	limits, requests := at.Child("limits"), at.Child("requests")
	for _, name := range sortedKeys(need.Limits) {
		errs = append(errs, validateQuantity(name, need.Limits[name], limits.Key(string(name)))...)
	}
	for _, name := range sortedKeys(need.Requests) {
		request := need.Requests[name]
		errs = append(errs, validateQuantity(name, request, requests.Key(string(name)))...)
		limit, limited := need.Limits[name]
		switch whole := !overcommits(name); {
		case limited && whole && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case !limited && whole:
			errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
		}
	}
	return errs
}

func validateQuantity(name corev1.ResourceName, q quantity.Quantity, at *field.Path) field.ErrorList {
	switch {
	case !strings.Contains(string(name), "/") && !native(name):
		return field.ErrorList{
			field.Invalid(at, string(name), "must be a standard resource type or fully qualified"),
			field.Invalid(at, string(name), "must be a standard resource for containers"),
		}
	case strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) > 0:
		return invalid(at, string(name), validation.IsQualifiedName(string(name)))
	case q.Sign() < 0:
		return field.ErrorList{field.Invalid(at, q.String(), "must be greater than or equal to 0")}
	case !overcommits(name) && q.MilliValue()%1000 != 0:
		return field.ErrorList{field.Invalid(at, q.String(), "must be an integer")}
	}
	return nil
}

func native(name corev1.ResourceName) bool {
	if name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// overcommits reports whether a container may be limited to more than it requests: not for what is counted in whole devices.
func overcommits(name corev1.ResourceName) bool {
	return native(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// validatePodUpdate refuses changes of what a running pod cannot follow.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	next := pod.Spec.DeepCopy()
	for i := range min(len(next.Containers), len(old.Spec.Containers)) {
		next.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range min(len(next.InitContainers), len(old.Spec.InitContainers)) {
		next.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	next.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	if len(next.Tolerations) >= len(old.Spec.Tolerations) &&
		equality.Semantic.DeepEqual(next.Tolerations[:len(old.Spec.Tolerations)], old.Spec.Tolerations) {
		next.Tolerations = old.Spec.Tolerations
	}
	if sameSpec(next, &old.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than "+
		"`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "+
		"(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")}
}

func sameSpec(a, b *corev1.PodSpec) bool { return equality.Semantic.DeepEqual(a, b) }

func label(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	return invalid(at, value, validation.IsDNS1123Label(value))
}

func invalid(at *field.Path, value any, why []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range why {
		errs = append(errs, field.Invalid(at, value, msg))
	}
	return errs
}

func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
