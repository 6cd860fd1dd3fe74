package hostabi

import "unsafe"

// View is what a policy is shown, as Go values. The host fills one and keeps it: a View that is encoded again
// and again needs no memory of its own after the first time. It is not safe for concurrent use.
//
// Times that end in SinceMS or UntilMS are points on the scale of Decision.ElapsedMS; the others are lengths.
type View struct {
	Hook      Hook
	Decision  DecisionRow
	Profiles  []ProfileRow
	Executors []ExecutorRow // sorted by ID

	scratch encoder
}

// DecisionRow is the row of table decision: what is true of the call as a whole.
type DecisionRow struct {
	ID          uint64 // number of this decision, growing over the application's life
	ElapsedMS   int64  // since the application was created; never goes back
	WallMS      int64  // Unix time, for text only: it may jump
	Seed        uint64 // the only randomness there is
	Application string
	Trigger     Trigger
	// APIBudget is how many creates and deletes the daemon may still send right now; None when it does not count.
	APIBudget uint32
	// MaxPending is how many executors of all profiles may be requested or pending at once; 0 is no bound.
	MaxPending   uint32
	StateVersion uint32 // of State, 0 with none
	State        []byte // what the policy returned last; at most MaxStateSize
}

// ProfileRow is one profile and its fleet in numbers. A live executor is a requested, pending or running one.
type ProfileRow struct {
	ID     uint32
	Name   string
	Target uint32 // what was asked for from outside
	Floor  uint32 // live executors the policy must not go below
	// Ceiling is how many live executors the policy may have: the target in mode follow, the application's
	// maximum in mode scale. None is no bound.
	Ceiling uint32
	// Max bounds live and terminating executors together: what the cluster may hold at once. None is no bound.
	Max         uint32
	Requested   uint32
	Pending     uint32
	Running     uint32
	Terminating uint32
	Registered  uint32
	Busy        uint32 // registered, with a task
	Idle        uint32 // registered, without one
	Slots       uint32 // tasks that one executor runs at once
	// QueuedTasks could run on this profile and wait; RunningTasks are on its executors.
	QueuedTasks    uint32
	RunningTasks   uint32
	OldestQueuedMS int64  // how long the oldest queued task has waited; -1 with none
	MaxPending     uint32 // how many may be requested or pending at once; 0 is no bound
	BatchSize      uint32 // the most to ask for in one decision
	// LifetimeLeft is how many more executors the application may ever create; None is no bound. It is the
	// application's, so profiles share it.
	LifetimeLeft      uint32
	BackoffUntilMS    int64 // creates make no sense before; 0 with no backoff
	Mode              Mode
	ReusableClaims    uint32
	CreationTimeoutMS int64 // a requested executor that is not seen for longer is given up by the daemon
	IdleTimeoutMS     int64 // a request that is not wanted any more is cancelled once it is older than this
	ReleaseIdleMS     int64 // an idle executor may be let go after this; 0 is never by default
	// Failures by class, in the daemon's window.
	FailuresApplication   uint32
	FailuresImage         uint32
	FailuresQuota         uint32
	FailuresAdmission     uint32
	FailuresUnschedulable uint32
	FailuresDisruption    uint32
	FailuresNodeLost      uint32
	FailuresOOM           uint32
	FailuresProtocol      uint32
	FailuresOperator      uint32
	// The parts of the counts above that a policy must tell apart without looking at each executor.
	Draining  uint32 // of Requested, Pending and Running: they finish what they have and then leave
	Condemned uint32 // of Terminating: the daemon itself has ordered their end
	Unseen    uint32 // of Requested: neither registered nor draining, so there is no sign of life at all
}

// ExecutorRow is one executor.
type ExecutorRow struct {
	ID                 uint64
	Profile            uint32
	Phase              Phase
	PendingReason      PendingReason
	PhaseSinceMS       int64
	CreatedAgoMS       int64 // since it was asked for, or since its pod's creation once that is known
	Flags              Flags
	BusySlots          uint32
	Slots              uint32
	Restarts           uint32
	IdleSinceMS        int64 // -1 while it is busy or not registered
	TasksDone          uint32
	TasksFailed        uint32
	MeanTaskMS         int64 // fixed point: millionths of a millisecond
	OutputBytesHeld    uint64
	PeakMemoryBytes    uint64
	DiskBytes          uint64
	OutputBytesWritten uint64
	TotalTaskMS        int64
	Node               string
	Zone               string
	CapacityType       string
	Cost               int64 // fixed point: millionths of the operator's unit per hour
}

// Encode appends the view as a block to dst and returns the longer slice. Only the columns that p keeps are
// written; the zero Projection keeps all. It allocates nothing once dst and v have grown to their size.
func (v *View) Encode(dst []byte, p Projection) []byte {
	sources := [...]source{
		rowsOf(TableDecision, unsafe.Slice(&v.Decision, 1)),
		rowsOf(TableProfiles, v.Profiles),
		rowsOf(TableExecutors, v.Executors),
	}
	for i := range sources {
		sources[i].keep = p.mask(sources[i].schema.id)
	}
	if len(v.Executors) > tile {
		v.scratch.texts.expectMany()
	}
	return v.scratch.append(dst, v.Hook, sources[:])
}
