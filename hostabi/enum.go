package hostabi

import "strconv"

// Phase is where an executor is in its life, as views show it.
type Phase uint8

// The phases. The first four are live; in the others the executor has ended.
const (
	PhaseRequested   Phase = 1 // asked for, its pod not seen yet
	PhasePending     Phase = 2
	PhaseRunning     Phase = 3
	PhaseTerminating Phase = 4
	PhaseSucceeded   Phase = 5
	PhaseFailed      Phase = 6
	PhaseDeleted     Phase = 7
	PhaseLost        Phase = 8
)

// Terminal reports whether an executor in phase p has ended.
func (p Phase) Terminal() bool { return p >= PhaseSucceeded }

// String returns the phase's name.
func (p Phase) String() string {
	return name(uint64(p), "phase", "", "requested", "pending", "running", "terminating", "succeeded", "failed", "deleted", "lost")
}

// Mode is how far a policy's word goes for a profile.
type Mode uint8

// The modes.
const (
	ModeFollow Mode = 1 // the ceiling is the target that was set from outside
	ModeScale  Mode = 2 // the policy sizes the fleet between floor and ceiling
)

// String returns the mode's name.
func (m Mode) String() string { return name(uint64(m), "mode", "", "follow", "scale") }

// Trigger is why a policy is asked.
type Trigger uint8

// The triggers.
const (
	TriggerPods    Trigger = 1 // pods changed
	TriggerTargets Trigger = 2 // targets changed
	TriggerDemand  Trigger = 3 // the backlog changed
	TriggerTimer   Trigger = 4 // the time that the policy asked for, or the resync, has come
	TriggerStart   Trigger = 5 // the application starts, or a policy has just taken over
)

// String returns the trigger's name.
func (t Trigger) String() string {
	return name(uint64(t), "trigger", "", "pods", "targets", "demand", "timer", "start")
}

// PendingReason is why a pod does not run yet, as far as the cluster says.
type PendingReason uint8

// The reasons.
const (
	PendingNone          PendingReason = 0
	PendingUnschedulable PendingReason = 1
	PendingImage         PendingReason = 2
	PendingVolume        PendingReason = 3
	PendingAdmission     PendingReason = 4
	PendingInit          PendingReason = 5
)

// String returns the reason's name.
func (r PendingReason) String() string {
	return name(uint64(r), "pending reason", "none", "unschedulable", "image", "volume", "admission", "init")
}

// ReleaseMode is how an executor is let go.
type ReleaseMode uint8

// The release modes.
const (
	Cancel ReleaseMode = 1 // it has not started: withdraw it
	Drain  ReleaseMode = 2 // let it finish its work, then end it
	Kill   ReleaseMode = 3 // end it now; needs a grant
)

// String returns the release mode's name.
func (m ReleaseMode) String() string {
	return name(uint64(m), "release mode", "", "cancel", "drain", "kill")
}

// Flags are facts about an executor, one bit each.
type Flags uint32

// The flags.
const (
	FlagRegistered      Flags = 1 << 0 // its process has a session with the daemon
	FlagDecommissioning Flags = 1 << 1 // it gets no new task
	FlagCondemned       Flags = 1 << 2 // its end was ordered
	FlagHoldsOutput     Flags = 1 << 3 // it stores output that somebody may still want
)

// Has reports whether every bit of want is set.
func (f Flags) Has(want Flags) bool { return f&want == want }

// name returns names[n], or kind and the number where there is none.
func name(n uint64, kind string, names ...string) string {
	if n < uint64(len(names)) && names[n] != "" {
		return names[n]
	}
	return kind + " " + strconv.FormatUint(n, 10)
}
