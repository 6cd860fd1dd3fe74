package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
)

// state is where a container is in its life.
//
//	          launch           process runs          process ended
//	waiting ─────────► starting ───────────► running ─────────────► exited
//	   ▲                  │ cannot be made now                          │
//	   └──────────────────┴──────────────◄──────────────────────────────┘ restart policy
type state uint8

const (
	waiting state = iota
	starting
	running
	exited
)

// Restarts wait longer each time, as a kubelet's do.
const (
	firstBackOff = 10 * time.Second
	mostBackOff  = 5 * time.Minute
	calm         = 10 * time.Minute // a container that ran this long starts afresh
)

// unit is one container of a pod.
type unit struct {
	spec    *corev1.Container
	init    bool
	state   state
	process *guard.Process

	reason, message string    // why it waits
	again           time.Time // when to try
	backOff         time.Duration
	restarts        int32
	ran             *corev1.ContainerStateTerminated // how the newest run ended
	before          *corev1.ContainerStateTerminated // how the run before that ended
}

// newUnit returns a container that waits: for its own start, or for the pod's init containers.
func newUnit(spec *corev1.Container, init, afterInit bool) *unit {
	u := &unit{spec: spec, init: init, reason: "ContainerCreating"}
	if init || afterInit {
		u.reason = "PodInitializing"
	}
	return u
}

func (u *unit) exitCode() int32 {
	if u.ran == nil {
		return 0
	}
	return u.ran.ExitCode
}

// startsAgain reports whether the pod's policy wants another run after the last one.
func (u *unit) startsAgain(policy corev1.RestartPolicy) bool {
	switch policy {
	case corev1.RestartPolicyAlways:
		return !u.init || u.exitCode() != 0
	case corev1.RestartPolicyOnFailure:
		return u.exitCode() != 0
	case corev1.RestartPolicyNever:
	}
	return false
}

// planRestart makes an exited container wait for its next run: at once the first time, then longer and longer.
func (u *unit) planRestart(w *worker, now time.Time) {
	if u.ran.FinishedAt.Sub(u.ran.StartedAt.Time) >= calm && !u.ran.StartedAt.IsZero() {
		u.backOff = 0
	}
	u.before, u.restarts, u.state = u.ran, u.restarts+1, waiting
	u.again = now.Add(u.backOff)
	u.reason, u.message = "CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container=%s pod=%s", u.backOff, u.spec.Name, w.name())
	if u.backOff > 0 {
		w.k.events.record(w.pod, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+u.spec.Name+" in pod "+w.name())
	}
	u.lengthenBackOff()
}

func (u *unit) lengthenBackOff() { u.backOff = min(max(firstBackOff, 2*u.backOff), mostBackOff) }

// finish takes in how the process ended.
func (u *unit) finish(w *worker, exit guard.Exit) {
	reason := "Error"
	if exit.Code == 0 {
		reason = "Completed"
	}
	u.ran = &corev1.ContainerStateTerminated{
		ExitCode:    int32(exit.Code),
		Reason:      reason,
		StartedAt:   metav1.NewTime(u.process.Started().Truncate(time.Second)),
		FinishedAt:  metav1.NewTime(exit.At.Truncate(time.Second)),
		ContainerID: containerID(u.process),
		Message:     w.lastWords(u, exit.Code),
	}
	if exit.Lost {
		u.ran.Message = "the guard of this container was killed, and the container with it: how the process ended is not known"
		w.k.killOrphans(w.pod.UID, u.spec.Name)
	}
	u.state, u.process = exited, nil
}

// refuse takes in that the process was not started: for good when the command cannot be run, else to be tried again.
func (u *unit) refuse(w *worker, err error) {
	var start *guard.StartError
	now := time.Now()
	switch {
	case errors.Is(err, context.Canceled):
		u.state = waiting
	case errors.As(err, &start):
		message := "failed to create containerd task: failed to create shim task: OCI runtime create failed: " +
			"runc create failed: unable to start container process: error during container init: " + start.Reason
		u.state = exited
		u.ran = &corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", Message: message,
			StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: metav1.NewTime(now.Truncate(time.Second)),
		}
		w.k.events.record(w.pod, corev1.EventTypeWarning, "Failed", "Error: "+message)
	default:
		u.state, u.reason, u.message = waiting, "CreateContainerConfigError", err.Error()
		u.lengthenBackOff()
		u.again = now.Add(u.backOff)
		w.k.events.record(w.pod, corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
	}
}

// Bounds of a termination message, as a kubelet has them.
const (
	mostMessage      = 4096
	mostMessageLines = 80
	mostLogMessage   = 2048
)

// lastWords is what the container left as its termination message, or the end of its log when it failed without one
// and asked for that.
func (w *worker) lastWords(u *unit, code int) string {
	text, err := os.ReadFile(w.paths(u.spec.Name).message)
	if err == nil && len(text) > 0 {
		return string(text[max(0, len(text)-mostMessage):])
	}
	if u.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || code == 0 {
		return ""
	}
	return tail(w.paths(u.spec.Name).log(u.restarts), mostMessageLines, mostLogMessage)
}

func containerID(p *guard.Process) string { return fmt.Sprintf("process://%d", p.PID()) }
