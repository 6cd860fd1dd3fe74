package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Admit refuses a pod that a real cluster might run and this one cannot, with a sentence for each reason. It passes
// everything else, and every object that is not a pod.
func Admit(obj model.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	at := field.NewPath("spec")
	var errs field.ErrorList
	for i := range pod.Spec.InitContainers {
		c, where := &pod.Spec.InitContainers[i], at.Child("initContainers").Index(i)
		errs = append(errs, admitContainer(c, where)...)
		if c.RestartPolicy != nil {
			errs = append(errs, field.Forbidden(where.Child("restartPolicy"),
				"the local cluster has no sidecars: make it one of spec.containers"))
		}
	}
	for i := range pod.Spec.Containers {
		errs = append(errs, admitContainer(&pod.Spec.Containers[i], at.Child("containers").Index(i))...)
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil && v.HostPath == nil && v.ConfigMap == nil {
			errs = append(errs, field.Forbidden(at.Child("volumes").Index(i),
				fmt.Sprintf("the local cluster cannot provide volume %q: use emptyDir, hostPath or configMap", v.Name)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, errs)
}

func admitContainer(c *corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.Command) == 0 {
		errs = append(errs, field.Required(at.Child("command"),
			"the local cluster runs programs of this machine, not images: give the command"))
	}
	for i, e := range c.Env {
		if e.ValueFrom != nil && (e.ValueFrom.SecretKeyRef != nil || e.ValueFrom.FileKeyRef != nil) {
			errs = append(errs, field.Forbidden(at.Child("env").Index(i).Child("valueFrom"),
				"the local cluster keeps no secrets: use a value, a fieldRef or a configMapKeyRef"))
		}
	}
	for i, e := range c.EnvFrom {
		if e.SecretRef != nil {
			errs = append(errs, field.Forbidden(at.Child("envFrom").Index(i),
				"the local cluster keeps no secrets: use a configMapRef"))
		}
	}
	return errs
}
