package local

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// namespaces empties namespaces that are being deleted: what a controller manager does elsewhere.
type namespaces struct{ store *store.Store }

func (n *namespaces) run(ctx context.Context) error {
	var cursor *model.Cursor
	var err error
	open := func(_ time.Time, m *model.Server) {
		cursor, err = m.Watch(model.Ref{Resource: "namespaces"}, metav1.ListOptions{})
	}
	n.store.Do(open)
	for err == nil {
		if _, err = n.store.Next(ctx, cursor, 0); err != nil {
			return err
		}
		if err = n.empty(ctx); err != nil {
			return err
		}
		if cursor.Ended() {
			n.store.Do(open)
		}
	}
	return err
}

// empty works until no namespace is being deleted. Pods take their time: each change may be the one waited for.
func (n *namespaces) empty(ctx context.Context) error {
	for {
		changed := n.store.Changed()
		if n.sweep() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// sweep deletes what is in terminating namespaces, removes those that are empty and returns how many are left.
func (n *namespaces) sweep() (left int) {
	n.store.Do(func(now time.Time, m *model.Server) {
		page, err := m.List(model.Ref{Resource: "namespaces"}, metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, obj := range page.Items {
			ns := obj.(*corev1.Namespace)
			if ns.DeletionTimestamp == nil || len(ns.Spec.Finalizers) == 0 {
				continue // alive, or held by somebody else's finalizer
			}
			if clearOut(now, m, ns.Name) && m.Finalize(ns.Name) == nil {
				continue
			}
			left++
		}
	})
	return left
}

// clearOut deletes everything in the namespace and reports whether nothing is left.
func clearOut(now time.Time, m *model.Server, namespace string) bool {
	empty := true
	for _, r := range m.Resources() {
		if !r.Namespaced {
			continue
		}
		ref := model.Ref{Resource: r.Name, Namespace: namespace}
		if _, err := m.DeleteCollection(now, ref, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			empty = false
			continue
		}
		page, err := m.List(ref, metav1.ListOptions{Limit: 1})
		empty = empty && err == nil && len(page.Items) == 0
	}
	return empty
}
