package model

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateConfigMap(obj Object) field.ErrorList {
	cm := obj.(*corev1.ConfigMap)
	var errs field.ErrorList
	size := 0
	for _, key := range sortedKeys(cm.Data) {
		errs = append(errs, configKey(field.NewPath("data").Key(key), key)...)
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(cm.Data[key])
	}
	for _, key := range sortedKeys(cm.BinaryData) {
		errs = append(errs, configKey(field.NewPath("binaryData").Key(key), key)...)
		size += len(cm.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func configKey(at *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(at, key, msg))
	}
	return errs
}

func validateEvent(obj Object) field.ErrorList {
	event := obj.(*corev1.Event)
	where := event.InvolvedObject.Namespace
	if where == "" {
		where = "default" // events about what has no namespace live there
	}
	if event.Namespace != where {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), event.InvolvedObject.Namespace,
			"does not match event.namespace")}
	}
	return nil
}

func prepareNamespace(_ *Server, _ time.Time, obj Object) {
	ns := obj.(*corev1.Namespace)
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func keepNamespaceStatus(obj, old Object) {
	ns, before := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	ns.Spec.Finalizers, ns.Status = before.Spec.Finalizers, before.Status
}

func keepNamespaceSpec(obj, old Object) { obj.(*corev1.Namespace).Spec = old.(*corev1.Namespace).Spec }

func validateClaim(obj Object) field.ErrorList {
	claim := obj.(*corev1.PersistentVolumeClaim)
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if len(claim.Spec.AccessModes) == 0 {
		errs = append(errs, field.Required(spec.Child("accessModes"), "at least 1 access mode is required"))
	}
	if size, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(spec.Child("resources").Key(string(corev1.ResourceStorage)), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(spec.Child("resources").Key(string(corev1.ResourceStorage)), size.String(), "must be greater than zero"))
	}
	return errs
}

// prepareService gives a service its defaults and, unless it is headless, the next address of the range.
func prepareService(s *Server, _ time.Time, obj Object) {
	svc := obj.(*corev1.Service)
	svc.Status = corev1.ServiceStatus{}
	spec := &svc.Spec
	setDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	setDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		setDefault(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort.IntVal == 0 && port.TargetPort.StrVal == "" {
			port.TargetPort.IntVal = port.Port
		}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if spec.ClusterIP == "" {
		s.serviceIPs++
		spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", s.serviceIPs>>8&0xff, s.serviceIPs&0xff)
	}
	spec.ClusterIPs = []string{spec.ClusterIP}
	spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	single, internal := corev1.IPFamilyPolicySingleStack, corev1.ServiceInternalTrafficPolicyCluster
	setPointer(&spec.IPFamilyPolicy, single)
	setPointer(&spec.InternalTrafficPolicy, internal)
}

func validateService(obj Object) field.ErrorList {
	svc := obj.(*corev1.Service)
	ports := field.NewPath("spec", "ports")
	var errs field.ErrorList
	if len(svc.Spec.Ports) == 0 && svc.Spec.ClusterIP != corev1.ClusterIPNone && svc.Spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(ports, ""))
	}
	for i, port := range svc.Spec.Ports {
		if len(svc.Spec.Ports) > 1 && port.Name == "" {
			errs = append(errs, field.Required(ports.Index(i).Child("name"), ""))
		}
		for _, msg := range validation.IsValidPortNum(int(port.Port)) {
			errs = append(errs, field.Invalid(ports.Index(i).Child("port"), port.Port, msg))
		}
	}
	return errs
}

// keepServiceStatus also keeps the address of a client that left it out.
func keepServiceStatus(obj, old Object) {
	svc, before := obj.(*corev1.Service), old.(*corev1.Service)
	svc.Status = before.Status
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = before.Spec.ClusterIP, before.Spec.ClusterIPs
	}
}

func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

func setPointer[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}
