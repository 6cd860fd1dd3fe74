package pod

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Domain is the prefix of the labels and annotations that are ours alone.
const Domain = "retinue.dev/"

// The labels and annotations of an executor pod.
const (
	LabelApp         = Domain + "app"
	LabelExecutor    = Domain + "executor-id"
	LabelProfile     = Domain + "profile" // the profile's number
	LabelIncarnation = Domain + "incarnation"
	LabelOwner       = Domain + "owner" // of the daemon that made the pod: Owner.Name

	AnnotationIntent      = Domain + "intent"
	AnnotationProfileName = Domain + "profile-name"
	// AnnotationContainer names the executor's own container. It is the one that kubectl honours, so that `kubectl logs` shows the executor
	// and not a sidecar.
	AnnotationContainer = "kubectl.kubernetes.io/default-container"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	labelManagedBy = "app.kubernetes.io/managed-by"

	labelZone     = corev1.LabelTopologyZone
	labelHostname = corev1.LabelHostname
	labelCapacity = "karpenter.sh/capacity-type"
)

// DefaultContainer is the name of the executor's own container where nothing else is said.
const DefaultContainer = "executor"

// Name is the name of an executor's pod. The incarnation is in it so that a name is never used twice, even if all state is lost.
func Name(app string, incarnation uint32, id snapshot.ID) string {
	return app + "-i" + strconv.FormatUint(uint64(incarnation), 10) + "-exec-" + strconv.FormatUint(uint64(id), 10)
}

// Selector is a label selector for the executor pods of all applications. It asks for one label alone: with each further one that it asked for,
// there would be one more that nobody may take from a pod without making it invisible.
func Selector() string { return LabelApp }

// Reserved reports whether a label or annotation key is set by this package, so that users may not set it.
func Reserved(key string) bool {
	switch key {
	case labelName, labelInstance, labelComponent, labelPartOf, labelManagedBy, AnnotationContainer:
		return true
	}
	return strings.HasPrefix(key, Domain)
}
