package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Resource describes one kind of object for discovery. All are in the core group, version v1.
type Resource struct {
	// Name is the plural in paths ("pods"), Singular the name for people.
	Name, Singular, Kind string
	// Short names are what people type ("po").
	Short      []string
	Categories []string
	Namespaced bool
	// Status reports whether there is a status subresource.
	Status bool
	// ReturnsDeleted reports whether a delete is answered with the object instead of a Status.
	ReturnsDeleted bool
}

// resource is a Resource with its rules. A nil rule does nothing.
type resource struct {
	Resource

	fresh   func() Object
	shallow func(Object) Object // a copy that shares everything below the top

	name           validation.ValidateNameFunc
	prepareCreate  func(s *Server, now time.Time, obj Object)
	validate       func(obj Object) field.ErrorList
	prepareUpdate  func(obj, old Object)
	prepareStatus  func(obj, old Object)
	validateUpdate func(obj, old Object) field.ErrorList
	grace          func(obj Object, asked *int64) int64 // nil: no graceful deletion
	fields         func(obj Object) map[string]string   // beyond metadata.name and metadata.namespace
}

func (r *resource) group() schema.GroupResource { return schema.GroupResource{Resource: r.Name} }

func (r *resource) kind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(r.Kind)
}

// Resources describes everything that the server keeps, in the order of their names.
func (s *Server) Resources() []Resource {
	all := make([]Resource, 0, len(s.collections))
	for _, c := range s.collections {
		all = append(all, c.resource.Resource)
	}
	return all
}

// New returns an empty object of the resource, or nil when there is no such resource.
func (s *Server) New(resource string) Object {
	for _, c := range s.collections {
		if c.resource.Name == resource {
			return c.resource.fresh()
		}
	}
	return nil
}

// Bare returns the object as it stands in a list: without kind and apiVersion, sharing everything else.
func (s *Server) Bare(resource string, obj Object) Object {
	for _, c := range s.collections {
		if c.resource.Name == resource {
			bare := c.resource.shallow(obj)
			bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			return bare
		}
	}
	return obj
}

// pointer is the pair of constraints that lets one function make and copy any typed object.
type pointer[T any] interface {
	*T
	Object
}

func typed[T any, P pointer[T]](r resource) *resource {
	r.fresh = func() Object { return P(new(T)) }
	r.shallow = func(obj Object) Object {
		c := *obj.(P)
		return P(&c)
	}
	return &r
}

func resources() []*resource {
	return []*resource{
		typed[corev1.ConfigMap](resource{
			Resource: Resource{Name: "configmaps", Singular: "configmap", Kind: "ConfigMap", Short: []string{"cm"}, Namespaced: true},
			name:     validation.NameIsDNSSubdomain,
			validate: validateConfigMap,
		}),
		typed[corev1.Event](resource{
			Resource: Resource{Name: "events", Singular: "event", Kind: "Event", Short: []string{"ev"}, Namespaced: true},
			name:     func(string, bool) []string { return nil },
			validate: validateEvent,
			fields:   eventFields,
		}),
		typed[corev1.Namespace](resource{
			Resource:      Resource{Name: "namespaces", Singular: "namespace", Kind: "Namespace", Short: []string{"ns"}, Status: true, ReturnsDeleted: true},
			name:          validation.ValidateNamespaceName,
			prepareCreate: prepareNamespace,
			prepareUpdate: keepNamespaceStatus,
			prepareStatus: keepNamespaceSpec,
			fields: func(obj Object) map[string]string {
				return map[string]string{"status.phase": string(obj.(*corev1.Namespace).Status.Phase)}
			},
		}),
		nodeResource(),
		typed[corev1.PersistentVolumeClaim](resource{
			Resource: Resource{
				Name: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Kind: "PersistentVolumeClaim",
				Short: []string{"pvc"}, Namespaced: true, Status: true, ReturnsDeleted: true,
			},
			name: validation.NameIsDNSSubdomain,
			prepareCreate: func(_ *Server, _ time.Time, obj Object) {
				obj.(*corev1.PersistentVolumeClaim).Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			},
			validate: validateClaim,
			prepareUpdate: func(obj, old Object) {
				obj.(*corev1.PersistentVolumeClaim).Status = old.(*corev1.PersistentVolumeClaim).Status
			},
			prepareStatus: func(obj, old Object) {
				obj.(*corev1.PersistentVolumeClaim).Spec = old.(*corev1.PersistentVolumeClaim).Spec
			},
		}),
		podResource(),
		typed[corev1.Service](resource{
			Resource: Resource{
				Name: "services", Singular: "service", Kind: "Service", Short: []string{"svc"},
				Categories: []string{"all"}, Namespaced: true, Status: true, ReturnsDeleted: true,
			},
			name:          validation.NameIsDNS1035Label,
			prepareCreate: prepareService,
			validate:      validateService,
			prepareUpdate: keepServiceStatus,
			prepareStatus: func(obj, old Object) { obj.(*corev1.Service).Spec = old.(*corev1.Service).Spec },
			fields: func(obj Object) map[string]string {
				spec := obj.(*corev1.Service).Spec
				return map[string]string{"spec.clusterIP": spec.ClusterIP, "spec.type": string(spec.Type)}
			},
		}),
	}
}

func nodeResource() *resource {
	return typed[corev1.Node](resource{
		Resource:      Resource{Name: "nodes", Singular: "node", Kind: "Node", Short: []string{"no"}, Status: true},
		name:          validation.NameIsDNSSubdomain,
		prepareUpdate: func(obj, old Object) { obj.(*corev1.Node).Status = old.(*corev1.Node).Status },
		prepareStatus: func(obj, old Object) { obj.(*corev1.Node).Spec = old.(*corev1.Node).Spec },
		fields: func(obj Object) map[string]string {
			unschedulable := "false"
			if obj.(*corev1.Node).Spec.Unschedulable {
				unschedulable = "true"
			}
			return map[string]string{"spec.unschedulable": unschedulable}
		},
	})
}

func podResource() *resource {
	return typed[corev1.Pod](resource{
		Resource: Resource{
			Name: "pods", Singular: "pod", Kind: "Pod", Short: []string{"po"},
			Categories: []string{"all"}, Namespaced: true, Status: true, ReturnsDeleted: true,
		},
		name:           validation.NameIsDNSSubdomain,
		prepareCreate:  preparePod,
		validate:       func(obj Object) field.ErrorList { return validatePod(obj.(*corev1.Pod)) },
		prepareUpdate:  preparePodUpdate,
		prepareStatus:  preparePodStatus,
		validateUpdate: func(obj, old Object) field.ErrorList { return validatePodUpdate(obj.(*corev1.Pod), old.(*corev1.Pod)) },
		grace:          podGrace,
		fields:         podFields,
	})
}

// preserve gives obj the identity of old where the client left it out, as a real server does before it compares.
func preserve(obj, old Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	obj.SetGeneration(old.GetGeneration())
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if old.GetDeletionGracePeriodSeconds() != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetSelfLink("")
	obj.SetManagedFields(nil)
}

func seconds(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second).UTC()) }
