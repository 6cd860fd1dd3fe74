package kubelet

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// surroundings is what the variables of a container may refer to.
type surroundings struct {
	pod     *corev1.Pod
	node    string
	offers  corev1.ResourceList
	configs func(name string) (*corev1.ConfigMap, error)
}

// environment is a container's variables in the order in which they were set; a later one replaces an earlier one.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, has := e.values[name]; !has {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) list() []string {
	all := make([]string, 0, len(e.names))
	for _, name := range e.names {
		all = append(all, name+"="+e.values[name])
	}
	return all
}

// inherited are the machine's variables that a program needs to find others and its own files. All else stays out, so
// that a pod does not depend on the terminal from which the cluster was started.
var inherited = [...]string{"PATH", "HOME", "USER", "TZ", "TMPDIR", "LANG"}

// environmentOf builds the variables of container c: the machine's few, the pod's own, and what stands for mounts.
func environmentOf(s surroundings, c *corev1.Container, extra map[string]string) (*environment, error) {
	env := &environment{values: map[string]string{}}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env.set(name, value)
		}
	}
	env.set("HOSTNAME", hostname(s.pod))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		env.set(name, extra[name])
	}
	for _, from := range c.EnvFrom {
		if err := env.addConfig(s, from); err != nil {
			return nil, err
		}
	}
	for i := range c.Env {
		value, present, err := s.value(&c.Env[i], c, env.values)
		if err != nil {
			return nil, err
		}
		if present {
			env.set(c.Env[i].Name, value)
		}
	}
	return env, nil
}

func (e *environment) addConfig(s surroundings, from corev1.EnvFromSource) error {
	if from.ConfigMapRef == nil {
		return nil
	}
	cm, err := s.configs(from.ConfigMapRef.Name)
	if err != nil {
		if optional(from.ConfigMapRef.Optional) {
			return nil
		}
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		e.set(from.Prefix+key, cm.Data[key])
	}
	return nil
}

// value resolves one variable. An optional one whose source is missing is not present.
func (s surroundings) value(v *corev1.EnvVar, c *corev1.Container, so map[string]string) (value string, present bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return expand(v.Value, so), true, nil
	case from.FieldRef != nil:
		value, err = s.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = s.resource(from.ResourceFieldRef, c)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		return s.configValue(from.ConfigMapKeyRef)
	}
	return "", false, fmt.Errorf("variable %s: its source is not provided by the local cluster", v.Name)
}

func (s surroundings) configValue(ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	cm, err := s.configs(ref.Name)
	if err == nil {
		if value, ok := cm.Data[ref.Key]; ok {
			return value, true, nil
		}
		err = fmt.Errorf("couldn't find key %s in ConfigMap %s/%s", ref.Key, s.pod.Namespace, ref.Name)
	}
	if optional(ref.Optional) {
		return "", false, nil
	}
	return "", false, err
}

func (s surroundings) field(path string) (string, error) {
	pod := s.pod
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return s.node, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return Address, nil
	}
	return "", fmt.Errorf("field %s of a pod cannot be a variable", path)
}

func subscript(path, of string) (string, bool) {
	rest, ok := strings.CutPrefix(path, of+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// resource resolves a request or limit of the container; what is not limited is limited by the node.
func (s surroundings) resource(ref *corev1.ResourceFieldSelector, c *corev1.Container) (string, error) {
	kind, name, ok := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	}
	if !ok || kind != "requests" && kind != "limits" {
		return "", fmt.Errorf("resource %s cannot be a variable", ref.Resource)
	}
	q, given := list[corev1.ResourceName(name)]
	if !given && kind == "limits" {
		q = s.offers[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return roundUp(q.MilliValue(), divisor.MilliValue()), nil
	}
	return roundUp(q.Value(), divisor.Value()), nil
}

func roundUp(value, divisor int64) string {
	if divisor <= 0 {
		divisor = 1
	}
	return strconv.FormatInt((value+divisor-1)/divisor, 10)
}

// expand replaces $(NAME) by the variable's value. An unknown name stays as it is, and $$ is a plain dollar.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 || at+1 == len(text) {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		rest := text[at+1:]
		end := strings.IndexByte(rest, ')')
		switch {
		case rest[0] == '$':
			out.WriteByte('$')
			text = rest[1:]
		case rest[0] == '(' && end > 0:
			if value, ok := values[rest[1:end]]; ok {
				out.WriteString(value)
			} else {
				out.WriteString(text[at : at+1+end+1])
			}
			text = rest[end+1:]
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

func optional(b *bool) bool { return b != nil && *b }

// hostname is the pod's own, cut where host names are.
func hostname(pod *corev1.Pod) string {
	if pod.Spec.Hostname != "" {
		return pod.Spec.Hostname
	}
	return strings.TrimRight(pod.Name[:min(len(pod.Name), 63)], ".-")
}
