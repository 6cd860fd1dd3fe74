package model_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newServer(t testing.TB, config model.Config) *model.Server {
	t.Helper()
	return model.New(t0, config)
}

func podAt(namespace, name string) model.Ref {
	return model.Ref{Resource: "pods", Namespace: namespace, Name: name}
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "local", Command: []string{"true"}}}},
	}
}

func create(t testing.TB, s *model.Server, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	obj, err := s.Create(t0, podAt("default", ""), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	return obj.(*corev1.Pod)
}

func bind(t testing.TB, s *model.Server, name string) {
	t.Helper()
	if err := s.Bind(t0, podAt("default", name), "n1"); err != nil {
		t.Fatalf("binding pod %s: %v", name, err)
	}
}

func read(t testing.TB, s *model.Server, name string) *corev1.Pod {
	t.Helper()
	obj, err := s.Read(podAt("default", name))
	if err != nil {
		t.Fatalf("reading pod %s: %v", name, err)
	}
	return obj.(*corev1.Pod)
}

func version(t testing.TB, obj metav1.Object) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatalf("version of %s: %v", obj.GetName(), err)
	}
	return v
}

// names tells the objects of a page apart from each other and from older states of themselves.
func names(page model.Page) []string {
	all := []string{}
	for _, obj := range page.Items {
		all = append(all, fmt.Sprintf("%s/%s@%s", obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion()))
	}
	return all
}
