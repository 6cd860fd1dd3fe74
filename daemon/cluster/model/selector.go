package model

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selectors are the label and field selector of one list or watch.
type selectors struct {
	resource   *resource
	labels     labels.Selector
	fields     fields.Selector
	everything bool
}

func parseSelectors(r *resource, opts metav1.ListOptions) (selectors, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return selectors{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return selectors{}, apierrors.NewBadRequest(err.Error())
	}
	known := fieldSet(r, r.fresh())
	for _, need := range byField.Requirements() {
		if _, ok := known[need.Field]; !ok {
			return selectors{}, apierrors.NewBadRequest(unknownField(r, need.Field))
		}
	}
	return selectors{resource: r, labels: byLabel, fields: byField, everything: byLabel.Empty() && byField.Empty()}, nil
}

func unknownField(r *resource, name string) string {
	if r.fields == nil {
		return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
	}
	return "field label not supported: " + name
}

// matches reports whether obj is there and selected.
func (s selectors) matches(obj Object) bool {
	if obj == nil {
		return false
	}
	return s.labels.Matches(labels.Set(obj.GetLabels())) &&
		(s.fields.Empty() || s.fields.Matches(fieldSet(s.resource, obj)))
}

func fieldSet(r *resource, obj Object) fields.Set {
	set := fields.Set{}
	if r.fields != nil {
		set = r.fields(obj)
	}
	set["metadata.name"] = obj.GetName()
	if r.Namespaced {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	return set
}

func podFields(obj Object) map[string]string {
	pod := obj.(*corev1.Pod)
	ip := pod.Status.PodIP
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	return map[string]string{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             ip,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

func eventFields(obj Object) map[string]string {
	event := obj.(*corev1.Event)
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	return map[string]string{
		"involvedObject.kind":            event.InvolvedObject.Kind,
		"involvedObject.namespace":       event.InvolvedObject.Namespace,
		"involvedObject.name":            event.InvolvedObject.Name,
		"involvedObject.uid":             string(event.InvolvedObject.UID),
		"involvedObject.apiVersion":      event.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": event.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       event.InvolvedObject.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         source,
		"type":                           event.Type,
	}
}
