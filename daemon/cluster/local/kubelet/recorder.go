package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Events are for people who look within the hour; a fleet that churns must not fill the memory with them.
const (
	mostEvents = 2_000
	eventLife  = time.Hour
)

// recorder tells people what happens to pods, as Event objects, and removes the oldest ones.
type recorder struct {
	store  *store.Store
	node   string
	serial uint64
	kept   []recorded // oldest first
}

type recorded struct {
	ref model.Ref
	at  time.Time
}

func newRecorder(st *store.Store, node string) *recorder { return &recorder{store: st, node: node} }

// record may be called by any goroutine: the store takes turns.
func (r *recorder) record(pod *corev1.Pod, kind, reason, message string) {
	component := "kubelet"
	if reason == "Scheduled" || reason == "FailedScheduling" {
		component = corev1.DefaultSchedulerName
	}
	r.store.Do(func(now time.Time, m *model.Server) {
		r.expire(now, m)
		r.serial++
		at := metav1.NewTime(now.Truncate(time.Second))
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace,
				Name:      fmt.Sprintf("%s.%x%04x", pod.Name, now.UnixNano(), r.serial&0xffff),
			},
			InvolvedObject: corev1.ObjectReference{
				Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			},
			Reason: reason, Message: message, Type: kind, Count: 1, FirstTimestamp: at, LastTimestamp: at,
			Source:              corev1.EventSource{Component: component, Host: r.node},
			ReportingController: component, ReportingInstance: r.node,
		}
		ref := model.Ref{Resource: "events", Namespace: event.Namespace, Name: event.Name}
		if _, err := m.Create(now, ref, event, metav1.CreateOptions{}); err != nil {
			return // the namespace is being deleted: nobody will look
		}
		r.kept = append(r.kept, recorded{ref: ref, at: now})
	})
}

func (r *recorder) expire(now time.Time, m *model.Server) {
	for len(r.kept) > 0 && (len(r.kept) >= mostEvents || now.Sub(r.kept[0].at) > eventLife) {
		m.Delete(now, r.kept[0].ref, metav1.DeleteOptions{}) //nolint:errcheck // somebody else has deleted it: so much the better
		r.kept = r.kept[1:]
	}
}
