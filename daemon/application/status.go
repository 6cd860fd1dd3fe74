package application

import (
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// Status is an application as others may see it: a value that never changes.
type Status struct {
	At         snapshot.Instant
	ID         string
	Namespace  string
	Mode       Mode
	Stopped    bool
	Profiles   []ProfileStatus
	Tasks      TaskCounts
	Policy     PolicyStatus
	Conditions []Condition
	Notices    []NoticeAt // the newest, oldest first, bounded
	Executors  *snapshot.Snapshot
}

// ProfileStatus is how one profile's executors are.
type ProfileStatus struct {
	Profile snapshot.Profile
	Name    string
	Target  uint32 // what is wanted now, by a client or by dynamic allocation
	Min     uint32
	Max     uint32
	Counts  snapshot.Counts
	Peak    uint32 // most executors registered at once so far
	Created uint64 // ever
	Queued  uint32 // tasks
	Running uint32 // tasks
}

// TaskCounts is how many tasks are in which state, and what happened so far.
type TaskCounts = task.Counts

// PolicyStatus is who decides and how it went.
type PolicyStatus struct {
	Policy     string
	By         string          // digest of the module in charge
	Decisions  []DecisionCount // by module, in order of first use
	Swaps      uint32
	Faults     uint64
	LastFault  string
	Violations []ViolationCount // ascending by rule
}

// DecisionCount is how many decisions a module made.
type DecisionCount struct {
	Policy string
	By     string
	Count  uint64
}

// ViolationCount is how often a rule of the guard clipped a decision.
type ViolationCount struct {
	Rule  string
	Count uint64
}

// ConditionType names a condition.
type ConditionType string

// The conditions. They agree with each other: an application that is not Ready and has not stopped is Progressing, or is Limited, and only one that has
// all that is wanted of it, and no task, is Settled.
const (
	Ready       ConditionType = "Ready"       // at least as many executors are registered as wanted
	Progressing ConditionType = "Progressing" // executors come or go, or tasks move
	Limited     ConditionType = "Limited"     // something keeps the fleet from its target; the reason says what
	ForeignPods ConditionType = "ForeignPods" // pods under the application's name are not this daemon's; not there if there are none
)

// Condition is one statement about an application, in the manner of Kubernetes' conditions.
type Condition struct {
	Type   ConditionType
	True   bool
	Reason string // CamelCase
	Text   string
	Since  snapshot.Instant
}

// NoticeAt is a notice and when it was given; equal ones in a row are counted.
type NoticeAt struct {
	At    snapshot.Instant
	Count uint32
	Notice
}
