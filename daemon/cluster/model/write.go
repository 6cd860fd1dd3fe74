package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Create stores a copy of obj in ref's resource and namespace and returns it with its identity. Only ref.Resource and
// ref.Namespace are read. Errors are those of a real server: 400, 403, 404 (no such namespace), 409, 422.
func (s *Server) Create(now time.Time, ref Ref, obj Object, opts metav1.CreateOptions) (Object, error) {
	c, err := s.collection(ref)
	if err != nil {
		return nil, err
	}
	r := c.resource
	obj = clone(obj)
	if err := place(r, obj, ref.Namespace); err != nil {
		return nil, err
	}
	if err := s.namespaceAllows(r, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" && obj.GetResourceVersion() != "0" {
		return nil, versionOnCreate()
	}
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.generatedName(obj.GetGenerateName()))
	}
	s.stamp(now, obj)
	if r.prepareCreate != nil {
		r.prepareCreate(s, now, obj)
	}
	if errs := validateNew(r, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(r.kind().GroupKind(), obj.GetName(), errs)
	}
	if s.config.Admit != nil {
		if err := s.config.Admit(obj); err != nil {
			return nil, err
		}
	}
	at := key(obj.GetNamespace(), obj.GetName())
	if _, exists := c.objects[at]; exists {
		return nil, apierrors.NewAlreadyExists(r.group(), obj.GetName())
	}
	if slices.Contains(opts.DryRun, metav1.DryRunAll) {
		obj.GetObjectKind().SetGroupVersionKind(r.kind())
		return obj, nil
	}
	return s.put(c, at, obj), nil
}

// stamp gives a new object what only the server may decide.
func (s *Server) stamp(now time.Time, obj Object) {
	obj.SetUID(s.newUID())
	obj.SetCreationTimestamp(seconds(now))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetGeneration(0)
	obj.SetSelfLink("")
	obj.SetManagedFields(nil)
}

// place puts the object into the namespace of the request, or says that it names another.
func place(r *resource, obj Object, namespace string) error {
	switch {
	case !r.Namespaced && obj.GetNamespace() != "", obj.GetNamespace() != "" && obj.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case r.Namespaced && namespace == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	obj.SetNamespace(namespace)
	return nil
}

func (s *Server) namespaceAllows(r *resource, obj Object) error {
	if !r.Namespaced {
		return nil
	}
	found, err := s.Read(Ref{Resource: "namespaces", Name: obj.GetNamespace()})
	if err != nil {
		return err
	}
	if found.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	refused := apierrors.NewForbidden(r.group(), obj.GetName(), fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", obj.GetNamespace()))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", obj.GetNamespace()),
		Field:   "metadata.namespace",
	})
	return refused
}

func validateNew(r *resource, obj Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(obj, r.Namespaced, r.name, field.NewPath("metadata"))
	if r.validate != nil {
		errs = append(errs, r.validate(obj)...)
	}
	return errs
}

// Update replaces the object at ref, or with ref.Subresource "status" that part of it. A resourceVersion or uid in obj
// is a condition. An update that changes nothing is not a write. Errors: 400, 404, 409, 422.
func (s *Server) Update(now time.Time, ref Ref, obj Object, opts metav1.UpdateOptions) (Object, error) {
	c, err := s.collection(ref)
	if err != nil {
		return nil, err
	}
	r := c.resource
	switch {
	case obj.GetName() != ref.Name:
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), ref.Name))
	case obj.GetNamespace() != "" && obj.GetNamespace() != ref.Namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	at := key(ref.Namespace, ref.Name)
	old, ok := c.objects[at]
	if !ok {
		return nil, apierrors.NewNotFound(r.group(), ref.Name)
	}
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, wrongUID(r, at, ref.Name, uid, old.GetUID())
	}
	if err := sameVersion(r, obj, old); err != nil {
		return nil, err
	}
	next := clone(obj)
	next.SetNamespace(ref.Namespace)
	if err := prepareUpdate(r, ref, next, old); err != nil {
		return nil, err
	}
	return s.replace(now, c, at, next, old, slices.Contains(opts.DryRun, metav1.DryRunAll))
}

func sameVersion(r *resource, obj, old Object) error {
	version := obj.GetResourceVersion()
	if version == "" || version == "0" || version == old.GetResourceVersion() {
		return nil
	}
	if _, err := strconv.ParseUint(version, 10, 64); err != nil {
		return apierrors.NewInvalid(r.kind().GroupKind(), obj.GetName(), field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), version, err.Error())})
	}
	return modified(r, obj.GetName())
}

func prepareUpdate(r *resource, ref Ref, next, old Object) error {
	preserve(next, old)
	prepare := r.prepareUpdate
	if ref.Subresource == "status" {
		prepare = r.prepareStatus
	}
	if prepare != nil {
		prepare(next, old)
	}
	errs := validation.ValidateObjectMetaAccessorUpdate(next, old, field.NewPath("metadata"))
	if r.validateUpdate != nil && ref.Subresource == "" {
		errs = append(errs, r.validateUpdate(next, old)...)
	}
	if r.validate != nil && ref.Subresource == "" {
		errs = append(errs, r.validate(next)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.kind().GroupKind(), next.GetName(), errs)
	}
	return nil
}

// replace stores next unless nothing changed, and removes it when that was its last finalizer.
func (s *Server) replace(_ time.Time, c *collection, at string, next, old Object, dry bool) (Object, error) {
	next.SetResourceVersion(old.GetResourceVersion())
	next.GetObjectKind().SetGroupVersionKind(c.resource.kind())
	switch {
	case dry:
		return next, nil
	case released(next, old):
		return s.remove(c, at), nil
	case equality.Semantic.DeepEqual(next, old):
		return old, nil
	}
	return s.put(c, at, next), nil
}

// released reports whether an object that is being deleted has just lost what held it.
func released(next, old Object) bool {
	noGrace := func(obj Object) bool {
		g := obj.GetDeletionGracePeriodSeconds()
		return g == nil || *g == 0
	}
	return next.GetDeletionTimestamp() != nil && len(old.GetFinalizers()) > 0 && len(next.GetFinalizers()) == 0 &&
		noGrace(next) && noGrace(old)
}

// Bind assigns a pod to a node, once: the write that a scheduler does. Errors: 404, 409.
func (s *Server) Bind(now time.Time, ref Ref, node string) error {
	ref.Resource, ref.Subresource = "pods", ""
	found, err := s.Read(ref)
	if err != nil {
		return err
	}
	pod := clone(found.(*corev1.Pod))
	conflict := func(why string) error {
		return apierrors.NewConflict(podResource().group(), ref.Name, errors.New(why))
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return conflict(fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return conflict(fmt.Sprintf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = node
	SetCondition(pod, now, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	c, err := s.collection(ref)
	if err != nil {
		return err
	}
	s.put(c, key(ref.Namespace, ref.Name), pod)
	return nil
}

// SetCondition adds or replaces a condition of the pod and reports whether anything changed. The time of the last
// transition moves only when the status does.
func SetCondition(pod *corev1.Pod, now time.Time, want corev1.PodCondition) bool {
	want.LastTransitionTime = seconds(now)
	for i, have := range pod.Status.Conditions {
		if have.Type != want.Type {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		if want.ObservedGeneration == 0 {
			want.ObservedGeneration = have.ObservedGeneration
		}
		want.LastProbeTime = have.LastProbeTime
		pod.Status.Conditions[i] = want
		return !equality.Semantic.DeepEqual(have, want)
	}
	pod.Status.Conditions = append(pod.Status.Conditions, want)
	return true
}
