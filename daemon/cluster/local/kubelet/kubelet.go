// Package kubelet is the only node of a local cluster: it takes pods and runs their containers as processes.
//
// What holds for every pod:
//
//   - it goes Pending, Running, then Succeeded or Failed, and never back; its containers' exit codes are the processes' own;
//   - a pod that does not fit the node stays Pending and says why, in a scheduler's words, until there is room;
//   - a deleted pod's containers get SIGTERM, then after the grace period everything of the pod is killed, and only when
//     nothing of it is left does the pod leave the API;
//   - when the kubelet ends, by itself or by SIGKILL, no process of any pod stays.
//
// What a process cannot have is said openly. Images are not used: the command must exist on this machine. There is no
// isolation: security contexts, limits, probes and life cycle hooks have no effect, all pods share the machine's network (their
// address is 127.0.0.1) and its files. A mount path cannot be honoured without privileges; instead every mounted volume
// is a folder named by the variable RETINUE_MOUNT_<VOLUME>, and a link of the mount path's name in the working folder.
// Admit refuses what would not work at all.
package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/retinue-sched/retinue/daemon/cluster/local/store"
	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Config is what a kubelet needs to know about its node.
type Config struct {
	// Node is the name of the node.
	Node string
	// Version is what the node reports as its kubelet's version.
	Version string
	// Executable is the program that is started as a guard.
	Executable string
	// Dir is the folder for the pods' folders. It belongs to the kubelet, which empties it at the start.
	Dir string
	// Fence is kept open by each guard until nothing of its container is left; may be nil.
	Fence *os.File
	// MaxPods, CPU and Memory are what the node offers.
	MaxPods     int
	CPU, Memory resource.Quantity
	// LogBytes is the size at which a container's log is rotated, once.
	LogBytes int64
	// StopGrace is how long containers may take to end when the kubelet is told to stop.
	StopGrace time.Duration
	// Log gets what an operator should know.
	Log *slog.Logger
}

// startsAtOnce bounds how many containers are being started at a time: each costs a fork of a large program, and more at
// once only makes all of them slow.
const startsAtOnce = 8

// Kubelet runs pods. Make one with New, then call Run.
type Kubelet struct {
	config   Config
	store    *store.Store
	events   *recorder
	node     *node
	starting chan struct{} // a token for each container that is being started
	waiting  map[types.UID]*corev1.Pod

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// New returns a kubelet for the pods in st.
func New(st *store.Store, config Config) *Kubelet {
	return &Kubelet{
		config:   config,
		store:    st,
		events:   newRecorder(st, config.Node),
		node:     newNode(config),
		starting: make(chan struct{}, startsAtOnce),
		waiting:  map[types.UID]*corev1.Pod{},
		workers:  map[types.UID]*worker{},
	}
}

// Run runs pods until ctx is done, then ends all containers, waits until nothing is left of them and returns
// context.Cause(ctx).
func (k *Kubelet) Run(ctx context.Context) error {
	defer k.running.Wait()
	if err := emptyFolder(k.config.Dir); err != nil {
		return fmt.Errorf("preparing the folder for pods: %w", err)
	}
	if err := k.register(); err != nil {
		return fmt.Errorf("registering node %s: %w", k.config.Node, err)
	}
	cursor, err := k.watch()
	for err == nil {
		var events []watch.Event
		if events, err = k.store.Next(ctx, cursor, 0); err != nil {
			return err
		}
		for _, event := range events {
			k.observe(ctx, event)
		}
		k.schedule()
		if cursor.Ended() { // fell behind the history that the server keeps: start again from what there is
			cursor, err = k.watch()
			k.forgetMissing()
		}
	}
	return fmt.Errorf("watching pods: %w", err)
}

func (k *Kubelet) watch() (cursor *model.Cursor, err error) {
	k.store.Do(func(_ time.Time, m *model.Server) {
		cursor, err = m.Watch(model.Ref{Resource: "pods"}, metav1.ListOptions{})
	})
	return cursor, err
}

// forgetMissing treats pods that are not in the API any more as deleted: their last event was missed.
func (k *Kubelet) forgetMissing() {
	present := map[types.UID]bool{}
	k.store.Do(func(_ time.Time, m *model.Server) {
		page, err := m.List(model.Ref{Resource: "pods"}, metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, pod := range page.Items {
			present[pod.GetUID()] = true
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, w := range k.workers {
		if !present[uid] {
			w.tell(w.pod, true)
			k.node.release(uid)
		}
	}
	for uid := range k.waiting {
		if !present[uid] {
			delete(k.waiting, uid)
		}
	}
}

func emptyFolder(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// observe takes in one change of one pod.
func (k *Kubelet) observe(ctx context.Context, event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	if event.Type == watch.Deleted {
		delete(k.waiting, pod.UID)
		k.node.release(pod.UID)
		if !k.tell(pod, true) {
			k.running.Go(func() { k.discard(pod) })
		}
		return
	}
	switch {
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Spec.SchedulerName == corev1.DefaultSchedulerName:
		k.waiting[pod.UID] = pod
	case pod.Spec.NodeName == k.config.Node:
		delete(k.waiting, pod.UID)
		k.follow(ctx, pod)
	default:
		delete(k.waiting, pod.UID)
	}
}

// follow gives a pod on this node to its worker, and makes the worker when there is none.
func (k *Kubelet) follow(ctx context.Context, pod *corev1.Pod) {
	if ended(pod) {
		k.node.release(pod.UID)
	} else {
		k.node.reserve(pod)
	}
	if k.tell(pod, false) {
		return
	}
	if ended(pod) {
		k.release(pod)
		return
	}
	w := newWorker(k, pod)
	k.mu.Lock()
	k.workers[pod.UID] = w
	k.mu.Unlock()
	k.running.Go(func() {
		w.run(ctx)
		k.mu.Lock()
		delete(k.workers, pod.UID)
		last, gone := w.last()
		k.mu.Unlock()
		if gone {
			k.discard(pod)
			return
		}
		k.release(last)
	})
}

// tell gives news of a pod to its worker and reports whether there is one. A worker that ends looks for news once more
// after it has left the table, under the same lock, so that none is lost.
func (k *Kubelet) tell(pod *corev1.Pod, gone bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, ok := k.workers[pod.UID]
	if ok {
		w.tell(pod, gone)
	}
	return ok
}

// release lets a pod whose processes have ended leave the API, if somebody wants it gone.
func (k *Kubelet) release(pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil {
		return
	}
	now := int64(0)
	k.store.Do(func(at time.Time, m *model.Server) {
		ref := model.Ref{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}
		_, _, err := m.Delete(at, ref, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			k.config.Log.Error("pod delete refused",
				slog.String("pod", pod.Namespace+"/"+pod.Name), slog.Any("error", err))
		}
	})
}

// discard removes what a pod has left on the disk.
func (k *Kubelet) discard(pod *corev1.Pod) {
	if err := os.RemoveAll(k.folder(pod)); err != nil {
		k.config.Log.Warn("pod folder stays", slog.Any("error", err))
	}
}

// schedule gives every waiting pod that fits to this node, the oldest first.
func (k *Kubelet) schedule() {
	pods := make([]*corev1.Pod, 0, len(k.waiting))
	for _, pod := range k.waiting {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, byAge)
	for _, pod := range pods {
		if why := k.node.refuses(pod); why != "" {
			k.unschedulable(pod, why)
			continue
		}
		var err error
		k.store.Do(func(now time.Time, m *model.Server) {
			err = m.Bind(now, model.Ref{Namespace: pod.Namespace, Name: pod.Name}, k.config.Node)
		})
		delete(k.waiting, pod.UID)
		if err != nil {
			continue // deleted or bound meanwhile: the watch will tell
		}
		k.node.reserve(pod)
		k.events.record(pod, corev1.EventTypeNormal, "Scheduled",
			fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, k.config.Node))
	}
}

func (k *Kubelet) unschedulable(pod *corev1.Pod, why string) {
	changed := k.updateStatus(pod, func(now time.Time, status *corev1.Pod) bool {
		return status.Spec.NodeName == "" && model.SetCondition(status, now, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
		})
	})
	if changed {
		k.events.record(pod, corev1.EventTypeWarning, "FailedScheduling", why)
	}
}

// updateStatus changes the status of the pod as it is now, unless change says that there is nothing to change or the pod
// is gone, and reports whether it was written.
func (k *Kubelet) updateStatus(pod *corev1.Pod, change func(time.Time, *corev1.Pod) bool) (written bool) {
	ref := model.Ref{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name, Subresource: "status"}
	k.store.Do(func(now time.Time, m *model.Server) {
		found, err := m.Read(ref)
		if err != nil || found.GetUID() != pod.UID {
			return
		}
		next := found.(*corev1.Pod).DeepCopy()
		if !change(now, next) {
			return
		}
		if _, err := m.Update(now, ref, next, metav1.UpdateOptions{}); err != nil {
			k.config.Log.Error("pod status refused",
				slog.String("pod", pod.Namespace+"/"+pod.Name), slog.Any("error", err))
			return
		}
		written = true
	})
	return written
}

func byAge(a, b *corev1.Pod) int {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return compareVersions(a.ResourceVersion, b.ResourceVersion)
}

// compareVersions orders resource versions as the numbers that they are.
func compareVersions(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// folder is where everything of a pod is kept.
func (k *Kubelet) folder(pod *corev1.Pod) string {
	return filepath.Join(k.config.Dir, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}
