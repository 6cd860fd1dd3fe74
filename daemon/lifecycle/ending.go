// Package lifecycle says what the end of an executor means, and what is left to do about it.
//
// It promises:
//
//   - every end has one class and one sentence that says what happened and, where somebody can do something, what;
//   - a task pays with an attempt only for ends that it may have caused;
//   - the object of an ended executor is deleted at most once in an interval, and until it is gone;
//   - executors that end before they ever worked are replaced ever more slowly, and at once again when one works.
//
// It is pure, and all that it holds is bounded by the executors that are there.
package lifecycle

import (
	"fmt"
	"strings"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Class is the kind of an executor's end. The names are labels of metrics; the numbers are ours.
type Class uint8

// The classes. Those from Invalid on never had a pod.
const (
	Finished    Class = 1  // it ended well, unasked
	Released    Class = 2  // it was told to end, or was drained
	Application Class = 3  // its program failed
	OutOfMemory Class = 4  // it used more memory than it may
	Image       Class = 5  // its container could not be started
	Disruption  Class = 6  // the cluster took it away: eviction, preemption, a node that shuts down
	NodeLost    Class = 7  // its node is gone or does not answer
	Deleted     Class = 8  // somebody deleted its pod
	Unseen      Class = 9  // it was asked for and never appeared
	Invalid     Class = 10 // the API does not take the pod as it is
	Quota       Class = 11 // a quota is used up
	Admission   Class = 12 // an admission rule or webhook said no
	Forbidden   Class = 13 // the daemon lacks the right
	Taken       Class = 14 // a pod that is not ours has its name
)

var classNames = [...]string{
	"", "finished", "released", "application", "out-of-memory", "image", "disruption", "node-lost", "deleted", "unseen",
	"invalid", "quota", "admission", "forbidden", "taken",
}

// String returns the class's name.
func (c Class) String() string {
	if c > 0 && int(c) < len(classNames) {
		return classNames[c]
	}
	return "class(?)"
}

// Ending is what the end of an executor means.
type Ending struct {
	Class    Class
	Blameful bool   // the tasks that it held may have caused it: it counts against their attempts
	Startup  bool   // it never worked, and nobody wanted it gone: it counts for the back-off
	Text     string // for people
}

// Classify says what the end of a terminal executor means; the zero Ending if it has not ended. RegisteredEver says whether it was ever
// registered.
//
// What we asked for comes before what the cluster says, as that is only how it was done; then what names a cause comes before the exit code.
func Classify(e snapshot.Executor, registeredEver bool) Ending {
	if e.Live() {
		return Ending{}
	}
	class := classify(&e, registeredEver)
	return Ending{
		Class:    class,
		Blameful: class == Application || class == OutOfMemory || class == Finished,
		Startup:  !registeredEver && class != Released && class != Deleted && class != Unseen, // a slow cluster is not the program's fault
		Text:     describe(&e, class),
	}
}

// NotCreated is what it means that the API refused to create an executor's pod, with a class from Invalid on and the API's text.
func NotCreated(id snapshot.ID, class Class, text string) Ending {
	startup := class != Taken // the next number has another name: to wait would change nothing
	return Ending{Class: class, Startup: startup, Text: fmt.Sprintf("executor %d was not created: %s: %s", id, refusal(class), text)}
}

func refusal(class Class) string {
	switch class {
	case Invalid:
		return "the pod is not valid; correct the pod template"
	case Quota:
		return "a quota is used up; raise it, or wait for others to end"
	case Admission:
		return "an admission rule said no; ask who keeps the cluster's rules"
	case Forbidden:
		return "the daemon may not create pods here; grant its service account the right"
	case Taken:
		return "its name is taken"
	case Finished, Released, Application, OutOfMemory, Image, Disruption, NodeLost, Deleted, Unseen:
	}
	return "the API refused"
}

func classify(e *snapshot.Executor, registeredEver bool) Class {
	reason := byReason(e.Exit.Reason)
	switch {
	case e.Condemned:
		return Released
	case e.Phase == snapshot.Lost:
		return Unseen
	case reason != 0:
		return reason
	case e.Deleting:
		return Deleted
	case e.Load.Draining && (e.Phase == snapshot.Succeeded || e.Exit.Known && e.Exit.Code == 0):
		return Released
	case e.Phase == snapshot.Deleted:
		return Deleted
	case e.Phase == snapshot.Succeeded:
		return Finished
	case !registeredEver && e.Exit.Known && (e.Exit.Code == exitNotExecutable || e.Exit.Code == exitNotFound):
		return Image
	case !registeredEver && e.Wait == snapshot.WaitImage && !e.Exit.Known:
		return Image
	}
	return Application
}

// byReason is the class that the cluster's short reason names, 0 if it names none.
func byReason(reason string) Class {
	switch reason {
	case "OOMKilled":
		return OutOfMemory
	case "NodeLost", "DeletionByPodGC", "NodeUnreachable":
		return NodeLost
	case "Evicted", "EvictionByEvictionAPI", "DeletionByTaintManager", "PreemptionByScheduler", "PreemptionByKubeScheduler", "Preempting", "Preempted",
		"TerminationByKubelet", "Terminated", "Shutdown", "NodeShutdown", "NodeAffinity", "UnexpectedAdmissionError", "ContainerStatusUnknown":
		return Disruption
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "StartError",
		"ContainerCannotRun", "RunContainerError", "CreateContainerError", "CreateContainerConfigError":
		return Image
	}
	if strings.HasPrefix(reason, "OutOf") { // OutOfcpu, OutOfmemory, OutOfpods: the node had no room for it after all
		return Disruption
	}
	return 0
}

// describe puts an end into words.
func describe(e *snapshot.Executor, class Class) string {
	var b strings.Builder
	fmt.Fprintf(&b, "executor %d ", e.ID)
	switch class {
	case Finished:
		b.WriteString("ended by itself without an error, though nobody had asked it to")
	case Released:
		b.WriteString("was let go")
	case OutOfMemory:
		b.WriteString("used more memory than its limit and was killed; raise the limit of its profile or give it fewer slots")
	case Image:
		b.WriteString("could not be started; check the image and the command in the pod template")
	case Disruption:
		b.WriteString("was taken away by the cluster")
	case NodeLost:
		b.WriteString("is gone with its node")
	case Deleted:
		b.WriteString("was deleted by a person or by another controller")
	case Unseen:
		b.WriteString("was asked for and never appeared; the cluster may be slow, or something removes its pods")
	case Application, Invalid, Quota, Admission, Forbidden, Taken:
		b.WriteString("failed")
	}
	if e.Exit.Known && class != Finished {
		fmt.Fprintf(&b, "; exit code %d (%s)", e.Exit.Code, Exit(e.Exit.Code))
	}
	if e.Node != "" && (class == Disruption || class == NodeLost) {
		fmt.Fprintf(&b, "; node %s", e.Node)
	}
	if r := e.Exit.Reason; r != "" && r != "Error" && r != "Completed" { // what every container ends with says nothing
		fmt.Fprintf(&b, "; reason %s", r)
	} else if class == Image && e.WaitText != "" {
		fmt.Fprintf(&b, "; %s", e.WaitText)
	}
	if e.Exit.Message != "" && class != Released {
		fmt.Fprintf(&b, ": %s", e.Exit.Message)
	}
	return b.String()
}
