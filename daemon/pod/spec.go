// Package pod is the only place that knows what an executor pod looks like.
//
// It promises:
//
//   - Build gives the same pod for the same input, shares no memory with the template, and always names the executor, its application and its
//     owner, whatever the template says;
//   - an Owner takes no pod for its own that it did not make;
//   - what Validate accepts, Build builds;
//   - Read takes any pod at all, also a foreign or damaged one, and answers with an observation of bounded size or an error, never a panic.
package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// DefaultGrace is how long a pod may take to end where the template does not say.
const DefaultGrace = 30 * time.Second

// Spec is what the executor pods of one application have in common, and its profiles.
type Spec struct {
	Application string // DNS-1123 label, at most MaxApplication bytes
	Namespace   string
	Incarnation uint32
	Owner       Owner             // who makes the pods
	Labels      map[string]string // on every pod; keys of ours are refused
	Annotations map[string]string

	Address string        // where executors find the daemon
	Program string        // path of the executor program in the container; the command where a profile gives none
	CAFile  string        // file in the container with the daemon's certificate authority; empty: none
	Lease   time.Duration // how long an executor goes on without the daemon

	Profiles []Profile // at least one
}

// Profile is how the pods of one kind of executor look. What is empty comes from the template.
type Profile struct {
	ID        snapshot.Profile
	Name      string
	Image     string
	Command   []string
	Env       map[string]string // RETINUE_ names are refused
	CPU       string            // request, a Kubernetes quantity
	CPULimit  string            // empty: none
	Memory    string            // request and limit
	Resources map[string]string // other resources, such as nvidia.com/gpu: request and limit
	Slots     uint32

	Template  *corev1.Pod // nil: none
	Container string      // the executor's container in the template; empty: the one named "executor", or else the first
}

// Instance is what is particular to one executor's pod.
type Instance struct {
	Executor snapshot.ID
	Profile  snapshot.Profile
	Name     string // empty: Name(application, incarnation, executor)
	Token    string // the executor's credential for its first registration

	Zone, Capacity, Node string // where the pod should rather be; the scheduler may decide otherwise
}

func (s *Spec) profile(id snapshot.Profile) (int, bool) {
	for i := range s.Profiles {
		if s.Profiles[i].ID == id {
			return i, true
		}
	}
	return 0, false
}
