package pod

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// envPrefix begins the variables that the executor program reads.
const envPrefix = "RETINUE_"

// environment is the executor's: ours first, so that a user's value may refer to them as $(RETINUE_POD_NAME); then the template's in its
// order, each replaced by the profile's of the same name; then the profile's others by name.
func environment(template []corev1.EnvVar, spec *Spec, profile *Profile, in Instance) []corev1.EnvVar {
	env := ours(spec, profile, in)
	seen := map[string]bool{}
	for _, v := range template {
		if strings.HasPrefix(v.Name, envPrefix) {
			continue // an executor that reads another's identity would be refused by the daemon for good
		}
		if value, ok := profile.Env[v.Name]; ok {
			v = corev1.EnvVar{Name: v.Name, Value: value}
		}
		seen[v.Name] = true
		env = append(env, v)
	}
	for _, name := range slices.Sorted(maps.Keys(profile.Env)) {
		if !seen[name] && !strings.HasPrefix(name, envPrefix) {
			env = append(env, corev1.EnvVar{Name: name, Value: profile.Env[name]})
		}
	}
	return env
}

// ours is what the executor program is told.
func ours(spec *Spec, profile *Profile, in Instance) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "RETINUE_ADDRESS", Value: spec.Address},
		{Name: "RETINUE_APPLICATION", Value: spec.Application},
		{Name: "RETINUE_NAMESPACE", Value: spec.Namespace},
		{Name: "RETINUE_EXECUTOR_ID", Value: strconv.FormatUint(uint64(in.Executor), 10)},
		{Name: "RETINUE_TOKEN", Value: in.Token},
		{Name: "RETINUE_SLOTS", Value: strconv.FormatUint(uint64(profile.Slots), 10)},
		fromField("RETINUE_POD_NAME", "metadata.name"),
		fromField("RETINUE_POD_UID", "metadata.uid"),
	}
	if spec.Lease > 0 {
		env = append(env, corev1.EnvVar{Name: "RETINUE_LEASE", Value: spec.Lease.String()})
	}
	if spec.CAFile != "" {
		env = append(env, corev1.EnvVar{Name: "RETINUE_CA_FILE", Value: spec.CAFile})
	}
	return env
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}
