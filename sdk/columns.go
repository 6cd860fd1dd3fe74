package sdk

import "github.com/retinue-sched/retinue/hostabi"

// ID returns column id.
func (d Decision) ID() uint64 { return first[uint64](d.table, hostabi.DecisionID, hostabi.U64) }

// ElapsedMS returns column elapsed_ms.
func (d Decision) ElapsedMS() int64 {
	return first[int64](d.table, hostabi.DecisionElapsedMS, hostabi.I64)
}

// WallMS returns column wall_ms.
func (d Decision) WallMS() int64 { return first[int64](d.table, hostabi.DecisionWallMS, hostabi.I64) }

// Seed returns column seed.
func (d Decision) Seed() uint64 { return first[uint64](d.table, hostabi.DecisionSeed, hostabi.U64) }

// Application returns column application.
func (d Decision) Application() string { return d.texts(hostabi.DecisionApplication).At(0) }

// Trigger returns column trigger.
func (d Decision) Trigger() hostabi.Trigger {
	return first[hostabi.Trigger](d.table, hostabi.DecisionTrigger, hostabi.U8)
}

// APIBudget returns column api_budget.
func (d Decision) APIBudget() uint32 {
	return first[uint32](d.table, hostabi.DecisionAPIBudget, hostabi.U32)
}

// MaxPending returns column max_pending.
func (d Decision) MaxPending() uint32 {
	return first[uint32](d.table, hostabi.DecisionMaxPending, hostabi.U32)
}

// StateVersion returns column state_version.
func (d Decision) StateVersion() uint32 {
	return first[uint32](d.table, hostabi.DecisionStateVersion, hostabi.U32)
}

// State returns column state.
func (d Decision) State() []byte { return d.bytes(hostabi.DecisionState) }

// ID returns column id, one value a row.
func (p Profiles) ID() []uint32 { return numbers[uint32](p.table, hostabi.ProfilesID, hostabi.U32) }

// Name returns column name, one value a row.
func (p Profiles) Name() Texts { return p.texts(hostabi.ProfilesName) }

// Target returns column target, one value a row.
func (p Profiles) Target() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesTarget, hostabi.U32)
}

// Floor returns column floor, one value a row.
func (p Profiles) Floor() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFloor, hostabi.U32)
}

// Ceiling returns column ceiling, one value a row.
func (p Profiles) Ceiling() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesCeiling, hostabi.U32)
}

// Max returns column max, one value a row.
func (p Profiles) Max() []uint32 { return numbers[uint32](p.table, hostabi.ProfilesMax, hostabi.U32) }

// Requested returns column requested, one value a row.
func (p Profiles) Requested() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesRequested, hostabi.U32)
}

// Pending returns column pending, one value a row.
func (p Profiles) Pending() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesPending, hostabi.U32)
}

// Running returns column running, one value a row.
func (p Profiles) Running() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesRunning, hostabi.U32)
}

// Terminating returns column terminating, one value a row.
func (p Profiles) Terminating() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesTerminating, hostabi.U32)
}

// Registered returns column registered, one value a row.
func (p Profiles) Registered() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesRegistered, hostabi.U32)
}

// Busy returns column busy, one value a row.
func (p Profiles) Busy() []uint32 { return numbers[uint32](p.table, hostabi.ProfilesBusy, hostabi.U32) }

// Idle returns column idle, one value a row.
func (p Profiles) Idle() []uint32 { return numbers[uint32](p.table, hostabi.ProfilesIdle, hostabi.U32) }

// Slots returns column slots, one value a row.
func (p Profiles) Slots() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesSlots, hostabi.U32)
}

// QueuedTasks returns column queued_tasks, one value a row.
func (p Profiles) QueuedTasks() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesQueuedTasks, hostabi.U32)
}

// RunningTasks returns column running_tasks, one value a row.
func (p Profiles) RunningTasks() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesRunningTasks, hostabi.U32)
}

// OldestQueuedMS returns column oldest_queued_ms, one value a row.
func (p Profiles) OldestQueuedMS() []int64 {
	return numbers[int64](p.table, hostabi.ProfilesOldestQueuedMS, hostabi.I64)
}

// MaxPending returns column max_pending, one value a row.
func (p Profiles) MaxPending() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesMaxPending, hostabi.U32)
}

// BatchSize returns column batch_size, one value a row.
func (p Profiles) BatchSize() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesBatchSize, hostabi.U32)
}

// LifetimeLeft returns column lifetime_left, one value a row.
func (p Profiles) LifetimeLeft() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesLifetimeLeft, hostabi.U32)
}

// BackoffUntilMS returns column backoff_until_ms, one value a row.
func (p Profiles) BackoffUntilMS() []int64 {
	return numbers[int64](p.table, hostabi.ProfilesBackoffUntilMS, hostabi.I64)
}

// Mode returns column mode, one value a row.
func (p Profiles) Mode() []hostabi.Mode {
	return numbers[hostabi.Mode](p.table, hostabi.ProfilesMode, hostabi.U8)
}

// ReusableClaims returns column reusable_claims, one value a row.
func (p Profiles) ReusableClaims() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesReusableClaims, hostabi.U32)
}

// CreationTimeoutMS returns column creation_timeout_ms, one value a row.
func (p Profiles) CreationTimeoutMS() []int64 {
	return numbers[int64](p.table, hostabi.ProfilesCreationTimeoutMS, hostabi.I64)
}

// IdleTimeoutMS returns column idle_timeout_ms, one value a row.
func (p Profiles) IdleTimeoutMS() []int64 {
	return numbers[int64](p.table, hostabi.ProfilesIdleTimeoutMS, hostabi.I64)
}

// ReleaseIdleMS returns column release_idle_ms, one value a row.
func (p Profiles) ReleaseIdleMS() []int64 {
	return numbers[int64](p.table, hostabi.ProfilesReleaseIdleMS, hostabi.I64)
}

// FailuresApplication returns column failures_application, one value a row.
func (p Profiles) FailuresApplication() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresApplication, hostabi.U32)
}

// FailuresImage returns column failures_image, one value a row.
func (p Profiles) FailuresImage() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresImage, hostabi.U32)
}

// FailuresQuota returns column failures_quota, one value a row.
func (p Profiles) FailuresQuota() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresQuota, hostabi.U32)
}

// FailuresAdmission returns column failures_admission, one value a row.
func (p Profiles) FailuresAdmission() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresAdmission, hostabi.U32)
}

// FailuresUnschedulable returns column failures_unschedulable, one value a row.
func (p Profiles) FailuresUnschedulable() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresUnschedulable, hostabi.U32)
}

// FailuresDisruption returns column failures_disruption, one value a row.
func (p Profiles) FailuresDisruption() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresDisruption, hostabi.U32)
}

// FailuresNodeLost returns column failures_node_lost, one value a row.
func (p Profiles) FailuresNodeLost() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresNodeLost, hostabi.U32)
}

// FailuresOOM returns column failures_oom, one value a row.
func (p Profiles) FailuresOOM() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresOOM, hostabi.U32)
}

// FailuresProtocol returns column failures_protocol, one value a row.
func (p Profiles) FailuresProtocol() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresProtocol, hostabi.U32)
}

// FailuresOperator returns column failures_operator, one value a row.
func (p Profiles) FailuresOperator() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesFailuresOperator, hostabi.U32)
}

// Draining returns column draining, one value a row.
func (p Profiles) Draining() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesDraining, hostabi.U32)
}

// Condemned returns column condemned, one value a row.
func (p Profiles) Condemned() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesCondemned, hostabi.U32)
}

// Unseen returns column unseen, one value a row.
func (p Profiles) Unseen() []uint32 {
	return numbers[uint32](p.table, hostabi.ProfilesUnseen, hostabi.U32)
}

// ID returns column id, one value a row.
func (e Executors) ID() []uint64 { return numbers[uint64](e.table, hostabi.ExecutorsID, hostabi.U64) }

// Profile returns column profile, one value a row.
func (e Executors) Profile() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsProfile, hostabi.U32)
}

// Phase returns column phase, one value a row.
func (e Executors) Phase() []hostabi.Phase {
	return numbers[hostabi.Phase](e.table, hostabi.ExecutorsPhase, hostabi.U8)
}

// PhaseSinceMS returns column phase_since_ms, one value a row.
func (e Executors) PhaseSinceMS() []int64 {
	return numbers[int64](e.table, hostabi.ExecutorsPhaseSinceMS, hostabi.I64)
}

// CreatedAgoMS returns column created_ago_ms, one value a row.
func (e Executors) CreatedAgoMS() []int64 {
	return numbers[int64](e.table, hostabi.ExecutorsCreatedAgoMS, hostabi.I64)
}

// Flags returns column flags, one value a row.
func (e Executors) Flags() []hostabi.Flags {
	return numbers[hostabi.Flags](e.table, hostabi.ExecutorsFlags, hostabi.U32)
}

// BusySlots returns column busy_slots, one value a row.
func (e Executors) BusySlots() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsBusySlots, hostabi.U32)
}

// Slots returns column slots, one value a row.
func (e Executors) Slots() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsSlots, hostabi.U32)
}

// IdleSinceMS returns column idle_since_ms, one value a row.
func (e Executors) IdleSinceMS() []int64 {
	return numbers[int64](e.table, hostabi.ExecutorsIdleSinceMS, hostabi.I64)
}

// TasksDone returns column tasks_done, one value a row.
func (e Executors) TasksDone() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsTasksDone, hostabi.U32)
}

// TasksFailed returns column tasks_failed, one value a row.
func (e Executors) TasksFailed() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsTasksFailed, hostabi.U32)
}

// MeanTaskMS returns column mean_task_ms, one value a row.
func (e Executors) MeanTaskMS() []int64 {
	return numbers[int64](e.table, hostabi.ExecutorsMeanTaskMS, hostabi.I64)
}

// OutputBytesHeld returns column output_bytes_held, one value a row.
func (e Executors) OutputBytesHeld() []uint64 {
	return numbers[uint64](e.table, hostabi.ExecutorsOutputBytesHeld, hostabi.U64)
}

// PeakMemoryBytes returns column peak_memory_bytes, one value a row.
func (e Executors) PeakMemoryBytes() []uint64 {
	return numbers[uint64](e.table, hostabi.ExecutorsPeakMemoryBytes, hostabi.U64)
}

// DiskBytes returns column disk_bytes, one value a row.
func (e Executors) DiskBytes() []uint64 {
	return numbers[uint64](e.table, hostabi.ExecutorsDiskBytes, hostabi.U64)
}

// OutputBytesWritten returns column output_bytes_written, one value a row.
func (e Executors) OutputBytesWritten() []uint64 {
	return numbers[uint64](e.table, hostabi.ExecutorsOutputBytesWritten, hostabi.U64)
}

// TotalTaskMS returns column total_task_ms, one value a row.
func (e Executors) TotalTaskMS() []int64 {
	return numbers[int64](e.table, hostabi.ExecutorsTotalTaskMS, hostabi.I64)
}

// PendingReason returns column pending_reason, one value a row.
func (e Executors) PendingReason() []hostabi.PendingReason {
	return numbers[hostabi.PendingReason](e.table, hostabi.ExecutorsPendingReason, hostabi.U8)
}

// Restarts returns column restarts, one value a row.
func (e Executors) Restarts() []uint32 {
	return numbers[uint32](e.table, hostabi.ExecutorsRestarts, hostabi.U32)
}

// Node returns column node, one value a row.
func (e Executors) Node() Texts { return e.texts(hostabi.ExecutorsNode) }

// Zone returns column zone, one value a row.
func (e Executors) Zone() Texts { return e.texts(hostabi.ExecutorsZone) }

// CapacityType returns column capacity_type, one value a row.
func (e Executors) CapacityType() Texts { return e.texts(hostabi.ExecutorsCapacityType) }

// Cost returns column cost, one value a row.
func (e Executors) Cost() []int64 { return numbers[int64](e.table, hostabi.ExecutorsCost, hostabi.I64) }
