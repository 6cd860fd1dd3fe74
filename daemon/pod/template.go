package pod

import (
	"bytes"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// MaxTemplate is the most bytes that a pod template may have.
const MaxTemplate = 256 << 10

// ParseTemplate reads a pod template: a Pod as JSON or YAML, of which apiVersion and kind may be left out. A field that Kubernetes does not
// know, or that is there twice, is an error that names it.
func ParseTemplate(text []byte) (*corev1.Pod, error) {
	if len(text) > MaxTemplate {
		return nil, fmt.Errorf("reading pod template: it has %d bytes, at most %d are allowed", len(text), MaxTemplate)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("reading pod template: it is empty")
	}
	known := runtime.NewScheme()
	if err := corev1.AddToScheme(known); err != nil {
		return nil, fmt.Errorf("preparing to read pod template: %w", err)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{Yaml: true, Strict: true})
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	obj, found, err := strict.Decode(text, &kind, nil)
	if err != nil {
		return nil, fmt.Errorf("reading pod template: %w", err)
	}
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("reading pod template: it is a %s, not a Pod", kindOf(found))
	}
	return p, nil
}

func kindOf(k *schema.GroupVersionKind) string {
	if k == nil {
		return "something unknown"
	}
	return k.GroupVersion().String() + " " + k.Kind
}
