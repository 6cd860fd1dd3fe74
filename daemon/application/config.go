package application

import (
	"cmp"
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/lifecycle"
	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// Mode is how far a policy's word goes.
type Mode = allocator.Mode

// The modes.
const (
	Follow = allocator.Follow // the target that a client or dynamic allocation set is the ceiling
	Scale  = allocator.Scale  // the policy sizes the fleet between minimum and maximum
)

// Profile is a kind of executor.
type Profile = allocator.Profile

// Dynamic is dynamic allocation: the target follows the backlog.
type Dynamic = allocator.Dynamic

// FailureBudget bounds how fast executors that end without having worked are replaced.
type FailureBudget = lifecycle.Budget

// Config is what an application is: its identity, its profiles and its bounds. It is a value; a changed one comes in as an event.
type Config struct {
	ID          string // DNS-1123 label, at most 40 bytes
	Namespace   string
	Incarnation uint32 // goes into executor names, so that a name is never used twice even if all state is lost
	Epoch       int64  // wall clock at Instant 0, milliseconds since 1970; only policies and people see it
	Seed        uint64 // of the seeds that policies see

	Profiles    []Profile // ascending by ID, at least one
	Mode        Mode
	MaxPending  uint32 // executors of all profiles requested or pending; 0: no bound
	MaxLifetime uint64 // executors ever created; 0: no bound
	Grants      guard.Grants
	Churn       uint32 // most creations and releases a minute; 0: no bound

	Batch            time.Duration // how long to gather changes before asking the policy, so that a burst costs one decision
	Resync           time.Duration // the longest without asking, so that a policy may act on the passing of time alone
	DecisionDeadline time.Duration // the longest to wait for an answer before the built-in policy is asked instead

	MaxTaskAttempts uint32        // default of task.Spec.MaxAttempts
	MaxQueued       uint32        // tasks accepted and not ended; more are refused
	QueuedBytes     uint64        // of the tasks accepted and not ended; more are refused; 0: no bound
	RetainTasks     uint32        // ended tasks kept to be looked at; the oldest go first
	RetainBytes     uint64        // bytes of output kept with them
	SessionTimeout  time.Duration // silence after which a session is lost
	ReattachGrace   time.Duration // how long an executor whose stream broke may come back before its tasks are given to others
	ReturnTimeout   time.Duration // how long an executor whose session is lost may take to come back before its pod is deleted

	Failures FailureBudget
}

// allocation is what the allocator must know of it.
func (c *Config) allocation() allocator.Config {
	return allocator.Config{
		Application: c.ID, Epoch: c.Epoch, Seed: c.Seed, Profiles: c.Profiles, Mode: c.Mode, MaxPending: c.MaxPending, MaxLifetime: c.MaxLifetime,
		Churn: c.Churn, Grants: c.Grants, Batch: c.Batch, Resync: c.Resync, Deadline: c.DecisionDeadline,
	}
}

func (c *Config) tasks() task.Limits {
	return task.Limits{MaxQueued: c.MaxQueued, QueuedBytes: c.QueuedBytes, MaxAttempts: c.MaxTaskAttempts, Retain: c.RetainTasks, RetainBytes: c.RetainBytes}
}

func (c *Config) sessions() roster.Limits {
	return roster.Limits{Timeout: c.SessionTimeout, Grace: c.ReattachGrace}
}

// profile is where a profile stands in Profiles.
func (c *Config) profile(id snapshot.Profile) (int, bool) {
	return slices.BinarySearchFunc(c.Profiles, id, func(p Profile, id snapshot.Profile) int { return cmp.Compare(p.ID, id) })
}
