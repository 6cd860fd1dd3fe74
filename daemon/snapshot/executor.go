// Package snapshot holds what executors an application has and what is wanted of them.
//
// It promises:
//
//   - one store: an executor that was asked for and not yet seen is a phase here, not a list elsewhere;
//   - a terminal executor never becomes live again, whatever late or old events arrive;
//   - an executor is gone only if a list at least as new as its creation lacks it;
//   - a Snapshot never changes; the store may go on while others read it;
//   - everything that is listed is in ascending order of ID.
//
// It is pure: time comes in as an Instant, nothing is read from outside.
package snapshot

import "time"

// Instant is a moment on the daemon's monotonic clock, in nanoseconds since an arbitrary start. The wall clock plays no part in decisions.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns how long i is after j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// ID is the number of an executor in its application. The first is 1; a number is never used again.
type ID uint64

// Profile is the number of a kind of executor in its application.
type Profile uint32

// Version is a resourceVersion of the cluster's API, compared as a number. 0 is unknown.
type Version uint64

// Phase is where an executor is in its life. The numbers are those that policies see.
//
//	          Assume              seen             seen             delete
//	(unknown) ──────► Requested ──────► Pending ────────► Running ────────► Terminating
//	                      │                │                 │                  │
//	              deadline│                └────────┬────────┴──────────────────┘
//	                      ▼                         ▼ seen, or absent from a list
//	                    Lost            Succeeded | Failed | Deleted
type Phase uint8

// The phases. Unknown is only ever part of an Observation: the cluster has the pod and cannot tell how it is, so the phase stays as it was
// (and a Requested executor, being seen, is Pending).
const (
	Unknown     Phase = 0
	Requested   Phase = 1
	Pending     Phase = 2
	Running     Phase = 3
	Terminating Phase = 4
	Succeeded   Phase = 5
	Failed      Phase = 6
	Deleted     Phase = 7
	Lost        Phase = 8
)

var phaseNames = [...]string{"Unknown", "Requested", "Pending", "Running", "Terminating", "Succeeded", "Failed", "Deleted", "Lost"}

// String returns the phase's name.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "Phase(?)"
}

// Terminal reports whether an executor in phase p has ended.
func (p Phase) Terminal() bool { return p >= Succeeded }

// Wait is why a pending executor does not run yet. The numbers are those that policies see.
type Wait uint8

// The reasons to wait.
const (
	WaitNone          Wait = 0
	WaitUnschedulable Wait = 1
	WaitImage         Wait = 2
	WaitVolume        Wait = 3
	WaitAdmission     Wait = 4
	WaitInit          Wait = 5
)

// Exit is how a terminal executor ended, as far as the cluster says.
type Exit struct {
	Known   bool   // whether the executor's own container reported an exit code
	Code    int32  // its exit code; meaningful if Known
	Reason  string // the cluster's short reason (OOMKilled, Evicted, Error, ...), possibly empty
	Message string // the cluster's text and the tail of the container's log, possibly empty, bounded
}

// Observation is what the cluster says of one executor's pod. Pods that are not ours are told apart before they come here.
type Observation struct {
	ID       ID
	Profile  Profile
	Phase    Phase
	Name     string
	UID      string
	Version  Version
	Wait     Wait
	WaitText string // the cluster's text for Wait, for people
	Node     string
	Zone     string
	Capacity string // capacity type of the node (spot, on-demand), if known
	Restarts uint32
	Exit     Exit
	Deleting bool // the pod's deletion was asked for, by whomever; implied by phase Terminating
}

// Executor is one numbered member of an application's fleet.
type Executor struct {
	ID        ID
	Profile   Profile
	Phase     Phase
	Since     Instant // when Phase was entered
	Asked     Instant // when its creation was decided
	Condemned bool    // its end was asked for: it may never register again
	Seen      Phase   // what the cluster showed last; Unknown until it has shown anything
	Deleting  bool    // the cluster showed that the pod's deletion was asked for, by whomever
	Gone      bool    // the cluster has no pod of it any more; only ever true of a terminal executor
	Name      string
	UID       string  // empty until the cluster answered
	Version   Version // of the newest observation
	Born      Version // of its creation, 0 until known: a list older than this says nothing about it
	Wait      Wait
	WaitText  string
	Node      string
	Zone      string
	Capacity  string
	Restarts  uint32
	Exit      Exit
	Load      Load
}

// Live reports whether the executor has not ended.
func (e *Executor) Live() bool { return !e.Phase.Terminal() }

// Unseen reports whether no list or watch event has shown the executor yet.
func (e *Executor) Unseen() bool { return e.Phase == Requested }

// Starting reports whether the executor was asked for and has neither started nor been told to end.
func (e *Executor) Starting() bool { return e.Phase == Requested || e.Phase == Pending }

// Load is what an executor's session and tasks say about it.
type Load struct {
	Registered bool // has a current session, or one that may still re-attach
	Draining   bool // finishes what it has and then leaves
	Slots      uint32
	Busy       uint32
	IdleSince  Instant // meaningful if Registered and Busy is 0
	Done       uint32
	Failed     uint32
	TaskTime   time.Duration // total of ended tasks
	Memory     uint64        // peak, bytes
	Disk       uint64        // bytes
}

// Target is how many executors of a profile are wanted.
type Target struct {
	Profile Profile
	Count   uint32
}
