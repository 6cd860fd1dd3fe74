package kubelet

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retinue-sched/retinue/daemon/cluster/model"
)

// Address is the address of the node and of each pod: all share the machine's network.
const Address = "127.0.0.1"

// node is what the machine offers and who has it.
type node struct {
	name   string
	offers corev1.ResourceList
	slots  int
	taken  map[types.UID]corev1.ResourceList
}

func newNode(c Config) *node {
	return &node{
		name:   c.Node,
		offers: corev1.ResourceList{corev1.ResourceCPU: c.CPU, corev1.ResourceMemory: c.Memory},
		slots:  c.MaxPods,
		taken:  map[types.UID]corev1.ResourceList{},
	}
}

func (n *node) reserve(pod *corev1.Pod) {
	if _, has := n.taken[pod.UID]; has {
		return
	}
	need := corev1.ResourceList{}
	for _, name := range requested(pod) {
		need[name] = model.Requests(pod, name)
	}
	n.taken[pod.UID] = need
}

func (n *node) release(uid types.UID) { delete(n.taken, uid) }

// refuses says in a scheduler's words why the pod cannot be given to the node; empty when it can.
func (n *node) refuses(pod *corev1.Pod) string {
	var why []string
	labels := n.labels()
	for key, value := range pod.Spec.NodeSelector {
		if labels[key] != value {
			return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. " + noVictims("Preemption is not helpful for scheduling")
		}
	}
	if len(n.taken) >= n.slots {
		why = append(why, "1 Too many pods")
	}
	for _, name := range requested(pod) {
		if !n.has(name, model.Requests(pod, name)) {
			why = append(why, fmt.Sprintf("1 Insufficient %s", name))
		}
	}
	if len(why) == 0 {
		return ""
	}
	return "0/1 nodes are available: " + strings.Join(why, ", ") + ". " + noVictims("No preemption victims found for incoming pod")
}

func noVictims(why string) string {
	return "preemption: 0/1 nodes are available: 1 " + why + "."
}

func (n *node) has(name corev1.ResourceName, need resource.Quantity) bool {
	if need.IsZero() {
		return true
	}
	for _, other := range n.taken {
		need.Add(other[name])
	}
	offer, known := n.offers[name]
	return known && need.Cmp(offer) <= 0
}

// requested names what a pod asks for, in order.
func requested(pod *corev1.Pod) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		for name := range c.Resources.Requests {
			names[name] = true
		}
	}
	delete(names, corev1.ResourceEphemeralStorage) // the disk is not counted
	return slices.Sorted(maps.Keys(names))
}

func (n *node) labels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:   n.name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
}

// register puts the node into the API.
func (k *Kubelet) register() (err error) {
	offers := k.node.offers.DeepCopy()
	offers[corev1.ResourcePods] = *resource.NewQuantity(int64(k.config.MaxPods), resource.DecimalSI)
	k.store.Do(func(now time.Time, m *model.Server) {
		at := metav1.NewTime(now.Truncate(time.Second))
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: k.config.Node, Labels: k.node.labels()},
			Status: corev1.NodeStatus{
				Capacity: offers, Allocatable: offers,
				Addresses: []corev1.NodeAddress{
					{Type: corev1.NodeInternalIP, Address: Address},
					{Type: corev1.NodeHostName, Address: k.config.Node},
				},
				NodeInfo: corev1.NodeSystemInfo{
					KubeletVersion: k.config.Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
					ContainerRuntimeVersion: "processes://" + runtime.Version(),
				},
				Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
					Message: "kubelet is posting ready status", LastHeartbeatTime: at, LastTransitionTime: at,
				}},
			},
		}
		_, err = m.Create(now, model.Ref{Resource: "nodes"}, n, metav1.CreateOptions{})
	})
	return err
}
