package model

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Delete asks for the end of the object at ref and returns it, with gone set when it was removed at once. Otherwise it
// stays with a deletion timestamp: a pod on a node until its kubelet deletes it with a grace period of 0, anything
// until its last finalizer is taken away. Errors: 404, 409 (preconditions), 422 (options).
func (s *Server) Delete(now time.Time, ref Ref, opts metav1.DeleteOptions) (obj Object, gone bool, err error) {
	ref.Subresource = ""
	c, err := s.collection(ref)
	if err != nil {
		return nil, false, err
	}
	at := key(ref.Namespace, ref.Name)
	old, ok := c.objects[at]
	if !ok {
		return nil, false, apierrors.NewNotFound(c.resource.group(), ref.Name)
	}
	if errs := metavalidation.ValidateDeleteOptions(&opts); len(errs) > 0 {
		return nil, false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	if err := checkPreconditions(c.resource, old, opts.Preconditions); err != nil {
		return nil, false, err
	}
	if slices.Contains(opts.DryRun, metav1.DryRunAll) {
		return old, true, nil
	}
	if ns, is := old.(*corev1.Namespace); is {
		return s.terminate(now, c, at, ns)
	}
	return s.doom(now, c, at, old, opts.GracePeriodSeconds)
}

func checkPreconditions(r *resource, old Object, want *metav1.Preconditions) error {
	if want == nil {
		return nil
	}
	kind := schema.GroupResource{Resource: r.Kind} // a real server names the kind here
	if want.UID != nil && *want.UID != old.GetUID() {
		return apierrors.NewConflict(kind, old.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match "+
			"the UID in record (%s). The object might have been deleted and then recreated", *want.UID, old.GetUID()))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != old.GetResourceVersion() {
		return apierrors.NewConflict(kind, old.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match "+
			"the ResourceVersion in record (%s). The object might have been modified", *want.ResourceVersion, old.GetResourceVersion()))
	}
	return nil
}

// doom marks the object as being deleted where that has to be seen, and removes it when nothing holds it.
func (s *Server) doom(now time.Time, c *collection, at string, old Object, asked *int64) (Object, bool, error) {
	next := clone(old)
	verdict := remains
	if c.resource.grace != nil {
		verdict = markGraceful(now, c.resource, next, asked)
	} else if len(old.GetFinalizers()) > 0 && old.GetDeletionTimestamp() == nil {
		mark(now, next, 0)
		verdict = marked
	}
	if verdict == pending {
		return old, false, nil
	}
	if verdict == marked {
		next = s.put(c, at, next)
	}
	grace := next.GetDeletionGracePeriodSeconds()
	if len(next.GetFinalizers()) > 0 || grace != nil && *grace > 0 {
		return next, false, nil
	}
	return s.remove(c, at), true, nil
}

// verdict is what a delete did to an object's marks.
type verdict uint8

const (
	remains verdict = iota // nothing to mark
	marked                 // deletion timestamp or grace period changed
	pending                // a deletion at least as quick is already under way
)

// markGraceful sets or shortens the time that an object has left. A later delete may only shorten it.
func markGraceful(now time.Time, r *resource, obj Object, asked *int64) verdict {
	if asked != nil && *asked < 0 {
		one := int64(1)
		asked = &one
	}
	if obj.GetDeletionTimestamp() == nil {
		mark(now, obj, r.grace(obj, asked))
		return marked
	}
	left := obj.GetDeletionGracePeriodSeconds()
	switch {
	case left == nil || *left == 0:
		return remains
	case asked == nil || *asked >= *left:
		return pending
	}
	sooner := obj.GetDeletionTimestamp().Add(time.Duration(*asked-*left) * time.Second)
	obj.SetDeletionTimestamp(&metav1.Time{Time: sooner})
	obj.SetDeletionGracePeriodSeconds(asked)
	return marked
}

func mark(now time.Time, obj Object, grace int64) {
	at := seconds(now.Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// terminate marks a namespace. Emptying it is a controller's work; Finalize ends it.
func (s *Server) terminate(now time.Time, c *collection, at string, old *corev1.Namespace) (Object, bool, error) {
	if old.DeletionTimestamp == nil {
		next := clone(old)
		t := seconds(now)
		next.DeletionTimestamp = &t
		next.Status.Phase = corev1.NamespaceTerminating
		old = s.put(c, at, next).(*corev1.Namespace)
	}
	if len(old.Spec.Finalizers) > 0 || len(old.Finalizers) > 0 {
		return old, false, nil
	}
	return s.remove(c, at), true, nil
}

// Finalize says that a terminating namespace is empty: it is removed unless a finalizer of another owner holds it.
func (s *Server) Finalize(name string) error {
	ref := Ref{Resource: "namespaces", Name: name}
	found, err := s.Read(ref)
	if err != nil {
		return err
	}
	ns := found.(*corev1.Namespace)
	c, err := s.collection(ref)
	if err != nil {
		return err
	}
	if ns.DeletionTimestamp == nil {
		return apierrors.NewConflict(c.resource.group(), name, fmt.Errorf("the namespace is not being deleted"))
	}
	if len(ns.Finalizers) > 0 {
		next := clone(ns)
		next.Spec.Finalizers = nil
		s.put(c, name, next)
		return nil
	}
	s.remove(c, name)
	return nil
}

// DeleteCollection deletes all objects that list selects, each as Delete does, and returns them. It stops at the first error.
func (s *Server) DeleteCollection(now time.Time, ref Ref, opts metav1.DeleteOptions, list metav1.ListOptions) (Page, error) {
	page, err := s.List(ref, list)
	if err != nil {
		return Page{}, err
	}
	for i, obj := range page.Items {
		at := Ref{Resource: ref.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}
		last, _, err := s.Delete(now, at, opts)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Page{}, err
		}
		page.Items[i] = last
	}
	return page, nil
}
