package actuator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// result is what became of one try.
type result struct {
	class   cluster.Class
	text    string
	err     error
	pod     *corev1.Pod // creation: the pod as the cluster has it
	foreign bool        // somebody else's pod has the name
	changed bool        // deletion: the pod is not what the decision saw
}

func resultOf(err error) result {
	if err == nil {
		return result{}
	}
	return result{class: cluster.ClassOf(err), text: bounded(cluster.Text(err)), err: err}
}

// make tries a creation once. It reads the pod where the answer to the creation leaves open whose it is, or whether it is there.
func (a *Actuator) make(ctx context.Context, o *order) result {
	if o.pod == nil { // built once: a pod built again might differ, and another token would lock the executor out
		p, err := a.cfg.Build(o.tenant.app, o.createPod)
		if err != nil {
			return result{class: cluster.Invalid, text: bounded(err.Error()), err: err}
		}
		o.pod = p
	}
	made, err := a.cfg.Cluster.Create(ctx, o.pod)
	r := resultOf(err)
	r.pod = made
	switch {
	case r.class == cluster.Exists:
		return a.inspect(ctx, o, r)
	case o.unsure && refusal(r.class):
		// Admission and quotas are asked before the name is looked up: an earlier try that went through may be what uses up the quota.
		return a.inspect(ctx, o, r)
	}
	return r
}

// inspect reads the pod that a creation met, or may have left behind.
func (a *Actuator) inspect(ctx context.Context, o *order, met result) result {
	found, err := a.cfg.Cluster.Read(ctx, o.pod.Namespace, o.pod.Name)
	class := cluster.ClassOf(err)
	switch {
	case class == cluster.NotFound && met.class == cluster.Exists: // it went between the two calls, so the name is free now
		return result{class: cluster.Unavailable, text: "a pod of the same name was just deleted"}
	case class == cluster.NotFound:
		return met
	case err != nil: // whose it is stays open
		r := resultOf(err)
		r.class = cluster.Unknown
		return r
	}
	if whose := a.cfg.Owner.Whose(found); whose != "" {
		return result{class: cluster.Exists, foreign: true, text: fmt.Sprintf(
			"there is a pod %s/%s (%s); delete it if nobody needs it, or leave it: another executor is asked for", found.Namespace, bounded(found.Name), whose)}
	}
	return result{pod: found} // of our pods only one ever has this name
}

// remove tries a deletion once.
func (a *Actuator) remove(ctx context.Context, o *order) result {
	d := cluster.Deletion{Namespace: o.tenant.namespace, Name: o.deletePod.Name, UID: o.deletePod.UID, Grace: o.deletePod.Grace}
	if v := o.deletePod.Version; v != 0 {
		d.Version = strconv.FormatUint(uint64(v), 10)
	}
	if d.UID == "" {
		uid, r, found := a.identify(ctx, o)
		if !found {
			return r
		}
		d.UID = uid
	}
	r := resultOf(a.cfg.Cluster.Delete(ctx, d))
	switch {
	case r.class == cluster.NotFound:
		return result{text: "the pod is gone"}
	case r.class == cluster.Conflict && o.unsure:
		return a.recheck(ctx, d, r)
	case r.class == cluster.Conflict:
		r.changed = true
	}
	return r
}

// identify finds the pod of a deletion whose creation was never answered, and makes sure that it is ours: a deletion by name alone might hit
// another's. Without a pod of ours there is nothing to delete.
func (a *Actuator) identify(ctx context.Context, o *order) (uid string, r result, found bool) {
	p, err := a.cfg.Cluster.Read(ctx, o.tenant.namespace, o.deletePod.Name)
	switch class := cluster.ClassOf(err); {
	case class == cluster.NotFound:
		return "", result{text: "there is no such pod"}, false
	case err != nil:
		return "", resultOf(err), false
	}
	if whose := a.cfg.Owner.Whose(p); whose != "" {
		return "", result{foreign: true, text: fmt.Sprintf("there is a pod %s/%s (%s): it stays", p.Namespace, bounded(p.Name), whose)}, false
	}
	return string(p.UID), result{}, true
}

// recheck finds out why a deletion that may have been carried out before meets a changed pod: a deletion is such a change itself.
func (a *Actuator) recheck(ctx context.Context, d cluster.Deletion, met result) result {
	p, err := a.cfg.Cluster.Read(ctx, d.Namespace, d.Name)
	switch class := cluster.ClassOf(err); {
	case class == cluster.NotFound:
		return result{text: "the pod is gone"}
	case err != nil:
		return resultOf(err)
	case string(p.UID) == d.UID && p.DeletionTimestamp != nil:
		return result{text: "the pod is going"}
	}
	met.changed = true
	return met
}

// refusal reports whether an error of a creation says that it was not carried out and will not be.
func refusal(c cluster.Class) bool {
	return c != cluster.None && c != cluster.Exists && c != cluster.Conflict && !c.Transient()
}

func refusalOf(c cluster.Class) application.RefusalClass {
	switch c {
	case cluster.Invalid:
		return application.RefusedInvalid
	case cluster.Quota:
		return application.RefusedQuota
	case cluster.Admission:
		return application.RefusedAdmission
	case cluster.Forbidden:
		return application.RefusedForbidden
	case cluster.Exists: // inspect found it to be another's
		return application.RefusedTaken
	default:
		return application.RefusedOther
	}
}

// version is a pod's resourceVersion as a number, 0 where the cluster does not count.
func version(p *corev1.Pod) snapshot.Version {
	v, err := strconv.ParseUint(p.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return snapshot.Version(v)
}

const maxText = 1 << 10

func bounded(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}
