package hostabi

import "unsafe"

// TableID names a table of a block.
type TableID uint16

// The tables. Views hold the first four, decisions the first and the last three.
const (
	TableStrings   TableID = 0 // what dict columns point into: one bytes column
	TableDecision  TableID = 1 // one row
	TableProfiles  TableID = 2
	TableExecutors TableID = 3 // sorted by id
	TableCreate    TableID = 16
	TableRelease   TableID = 17
	TableResult    TableID = 18 // at most one row
)

// String returns the table's name.
func (t TableID) String() string {
	if s := schemaOf(t); s != nil {
		return s.name
	}
	return name(uint64(t), "table")
}

// ColumnID names a column of a table. It is never used for another meaning, even when the column is gone.
type ColumnID uint16

// Type is how the values of a column are written.
type Type uint8

// The types. There are no floats: fractions are fixed point.
const (
	U8    Type = 1
	U32   Type = 2
	I32   Type = 3
	U64   Type = 4
	I64   Type = 5
	Bytes Type = 6 // u32 offsets, one more than rows, then the bytes they point into
	Dict  Type = 7 // u32 row of table strings
)

// String returns the type's name.
func (t Type) String() string {
	return name(uint64(t), "type", "", "u8", "u32", "i32", "u64", "i64", "bytes", "dict")
}

// size returns the bytes of one value, for Bytes those of one offset; 0 for a type that is not known.
func (t Type) size() int {
	switch t {
	case U8:
		return 1
	case U32, I32, Bytes, Dict:
		return 4
	case U64, I64:
		return 8
	default:
		return 0
	}
}

// StringsText is the one column of table strings.
const StringsText ColumnID = 1

// The columns of table decision.
const (
	DecisionID           ColumnID = 1
	DecisionElapsedMS    ColumnID = 2
	DecisionWallMS       ColumnID = 3
	DecisionSeed         ColumnID = 4
	DecisionApplication  ColumnID = 5
	DecisionTrigger      ColumnID = 6
	DecisionAPIBudget    ColumnID = 7
	DecisionMaxPending   ColumnID = 8
	DecisionStateVersion ColumnID = 9
	DecisionState        ColumnID = 10
)

// The columns of table profiles.
const (
	ProfilesID                    ColumnID = 1
	ProfilesName                  ColumnID = 2
	ProfilesTarget                ColumnID = 3
	ProfilesFloor                 ColumnID = 4
	ProfilesCeiling               ColumnID = 5
	ProfilesMax                   ColumnID = 6
	ProfilesRequested             ColumnID = 7
	ProfilesPending               ColumnID = 8
	ProfilesRunning               ColumnID = 9
	ProfilesTerminating           ColumnID = 10
	ProfilesRegistered            ColumnID = 11
	ProfilesBusy                  ColumnID = 12
	ProfilesIdle                  ColumnID = 13
	ProfilesSlots                 ColumnID = 14
	ProfilesQueuedTasks           ColumnID = 15
	ProfilesRunningTasks          ColumnID = 16
	ProfilesOldestQueuedMS        ColumnID = 17
	ProfilesMaxPending            ColumnID = 18
	ProfilesBatchSize             ColumnID = 19
	ProfilesLifetimeLeft          ColumnID = 20
	ProfilesBackoffUntilMS        ColumnID = 21
	ProfilesMode                  ColumnID = 22
	ProfilesReusableClaims        ColumnID = 23
	ProfilesCreationTimeoutMS     ColumnID = 24
	ProfilesIdleTimeoutMS         ColumnID = 25
	ProfilesReleaseIdleMS         ColumnID = 26
	ProfilesFailuresApplication   ColumnID = 27
	ProfilesFailuresImage         ColumnID = 28
	ProfilesFailuresQuota         ColumnID = 29
	ProfilesFailuresAdmission     ColumnID = 30
	ProfilesFailuresUnschedulable ColumnID = 31
	ProfilesFailuresDisruption    ColumnID = 32
	ProfilesFailuresNodeLost      ColumnID = 33
	ProfilesFailuresOOM           ColumnID = 34
	ProfilesFailuresProtocol      ColumnID = 35
	ProfilesFailuresOperator      ColumnID = 36
	ProfilesDraining              ColumnID = 37
	ProfilesCondemned             ColumnID = 38
	ProfilesUnseen                ColumnID = 39
)

// The columns of table executors.
const (
	ExecutorsID                 ColumnID = 1
	ExecutorsProfile            ColumnID = 2
	ExecutorsPhase              ColumnID = 3
	ExecutorsPhaseSinceMS       ColumnID = 4
	ExecutorsCreatedAgoMS       ColumnID = 5
	ExecutorsFlags              ColumnID = 6
	ExecutorsBusySlots          ColumnID = 7
	ExecutorsSlots              ColumnID = 8
	ExecutorsIdleSinceMS        ColumnID = 9
	ExecutorsTasksDone          ColumnID = 10
	ExecutorsTasksFailed        ColumnID = 11
	ExecutorsMeanTaskMS         ColumnID = 12
	ExecutorsOutputBytesHeld    ColumnID = 13
	ExecutorsPeakMemoryBytes    ColumnID = 14
	ExecutorsDiskBytes          ColumnID = 15
	ExecutorsOutputBytesWritten ColumnID = 16
	ExecutorsTotalTaskMS        ColumnID = 17
	ExecutorsPendingReason      ColumnID = 18
	ExecutorsRestarts           ColumnID = 19
	ExecutorsNode               ColumnID = 20
	ExecutorsZone               ColumnID = 21
	ExecutorsCapacityType       ColumnID = 22
	ExecutorsCost               ColumnID = 23
)

// The columns of table create.
const (
	CreateProfile      ColumnID = 1
	CreateCount        ColumnID = 2
	CreateZone         ColumnID = 3
	CreateCapacityType ColumnID = 4
	CreateNode         ColumnID = 5
	CreateReason       ColumnID = 6
)

// The columns of table release.
const (
	ReleaseExecutor   ColumnID = 1
	ReleaseModeColumn ColumnID = 2
	ReleaseReason     ColumnID = 3
)

// The columns of table result.
const (
	ResultNextCallMS   ColumnID = 1
	ResultStateVersion ColumnID = 2
	ResultState        ColumnID = 3
	ResultNote         ColumnID = 4
)

// column is one column as this version knows it. offset is where its value stands in the table's Go row,
// so that one loop can write any column.
type column struct {
	id     ColumnID
	name   string
	typ    Type
	offset uintptr
}

// schema is one table as this version knows it; stride is the size of its Go row.
type schema struct {
	id      TableID
	name    string
	stride  uintptr
	columns []column
}

// schemaOf returns the table with the given id, or nil.
func schemaOf(id TableID) *schema {
	for i := range schemas {
		if schemas[i].id == id {
			return &schemas[i]
		}
	}
	return nil
}

// ColumnName returns the name of a column, or its number where this version has none.
func ColumnName(t TableID, c ColumnID) string {
	if s := schemaOf(t); s != nil {
		for i := range s.columns {
			if s.columns[i].id == c {
				return s.columns[i].name
			}
		}
	}
	return name(uint64(c), "column")
}

// schemas is the whole contract about tables, frozen by a golden file. It never changes at run time.
var schemas = [...]schema{
	{id: TableStrings, name: "strings", columns: []column{{StringsText, "text", Bytes, 0}}},
	{id: TableDecision, name: "decision", stride: unsafe.Sizeof(DecisionRow{}), columns: []column{
		{DecisionID, "id", U64, unsafe.Offsetof(DecisionRow{}.ID)},
		{DecisionElapsedMS, "elapsed_ms", I64, unsafe.Offsetof(DecisionRow{}.ElapsedMS)},
		{DecisionWallMS, "wall_ms", I64, unsafe.Offsetof(DecisionRow{}.WallMS)},
		{DecisionSeed, "seed", U64, unsafe.Offsetof(DecisionRow{}.Seed)},
		{DecisionApplication, "application", Dict, unsafe.Offsetof(DecisionRow{}.Application)},
		{DecisionTrigger, "trigger", U8, unsafe.Offsetof(DecisionRow{}.Trigger)},
		{DecisionAPIBudget, "api_budget", U32, unsafe.Offsetof(DecisionRow{}.APIBudget)},
		{DecisionMaxPending, "max_pending", U32, unsafe.Offsetof(DecisionRow{}.MaxPending)},
		{DecisionStateVersion, "state_version", U32, unsafe.Offsetof(DecisionRow{}.StateVersion)},
		{DecisionState, "state", Bytes, unsafe.Offsetof(DecisionRow{}.State)},
	}},
	{id: TableProfiles, name: "profiles", stride: unsafe.Sizeof(ProfileRow{}), columns: []column{
		{ProfilesID, "id", U32, unsafe.Offsetof(ProfileRow{}.ID)},
		{ProfilesName, "name", Dict, unsafe.Offsetof(ProfileRow{}.Name)},
		{ProfilesTarget, "target", U32, unsafe.Offsetof(ProfileRow{}.Target)},
		{ProfilesFloor, "floor", U32, unsafe.Offsetof(ProfileRow{}.Floor)},
		{ProfilesCeiling, "ceiling", U32, unsafe.Offsetof(ProfileRow{}.Ceiling)},
		{ProfilesMax, "max", U32, unsafe.Offsetof(ProfileRow{}.Max)},
		{ProfilesRequested, "requested", U32, unsafe.Offsetof(ProfileRow{}.Requested)},
		{ProfilesPending, "pending", U32, unsafe.Offsetof(ProfileRow{}.Pending)},
		{ProfilesRunning, "running", U32, unsafe.Offsetof(ProfileRow{}.Running)},
		{ProfilesTerminating, "terminating", U32, unsafe.Offsetof(ProfileRow{}.Terminating)},
		{ProfilesRegistered, "registered", U32, unsafe.Offsetof(ProfileRow{}.Registered)},
		{ProfilesBusy, "busy", U32, unsafe.Offsetof(ProfileRow{}.Busy)},
		{ProfilesIdle, "idle", U32, unsafe.Offsetof(ProfileRow{}.Idle)},
		{ProfilesSlots, "slots", U32, unsafe.Offsetof(ProfileRow{}.Slots)},
		{ProfilesQueuedTasks, "queued_tasks", U32, unsafe.Offsetof(ProfileRow{}.QueuedTasks)},
		{ProfilesRunningTasks, "running_tasks", U32, unsafe.Offsetof(ProfileRow{}.RunningTasks)},
		{ProfilesOldestQueuedMS, "oldest_queued_ms", I64, unsafe.Offsetof(ProfileRow{}.OldestQueuedMS)},
		{ProfilesMaxPending, "max_pending", U32, unsafe.Offsetof(ProfileRow{}.MaxPending)},
		{ProfilesBatchSize, "batch_size", U32, unsafe.Offsetof(ProfileRow{}.BatchSize)},
		{ProfilesLifetimeLeft, "lifetime_left", U32, unsafe.Offsetof(ProfileRow{}.LifetimeLeft)},
		{ProfilesBackoffUntilMS, "backoff_until_ms", I64, unsafe.Offsetof(ProfileRow{}.BackoffUntilMS)},
		{ProfilesMode, "mode", U8, unsafe.Offsetof(ProfileRow{}.Mode)},
		{ProfilesReusableClaims, "reusable_claims", U32, unsafe.Offsetof(ProfileRow{}.ReusableClaims)},
		{ProfilesCreationTimeoutMS, "creation_timeout_ms", I64, unsafe.Offsetof(ProfileRow{}.CreationTimeoutMS)},
		{ProfilesIdleTimeoutMS, "idle_timeout_ms", I64, unsafe.Offsetof(ProfileRow{}.IdleTimeoutMS)},
		{ProfilesReleaseIdleMS, "release_idle_ms", I64, unsafe.Offsetof(ProfileRow{}.ReleaseIdleMS)},
		{ProfilesFailuresApplication, "failures_application", U32, unsafe.Offsetof(ProfileRow{}.FailuresApplication)},
		{ProfilesFailuresImage, "failures_image", U32, unsafe.Offsetof(ProfileRow{}.FailuresImage)},
		{ProfilesFailuresQuota, "failures_quota", U32, unsafe.Offsetof(ProfileRow{}.FailuresQuota)},
		{ProfilesFailuresAdmission, "failures_admission", U32, unsafe.Offsetof(ProfileRow{}.FailuresAdmission)},
		{ProfilesFailuresUnschedulable, "failures_unschedulable", U32, unsafe.Offsetof(ProfileRow{}.FailuresUnschedulable)},
		{ProfilesFailuresDisruption, "failures_disruption", U32, unsafe.Offsetof(ProfileRow{}.FailuresDisruption)},
		{ProfilesFailuresNodeLost, "failures_node_lost", U32, unsafe.Offsetof(ProfileRow{}.FailuresNodeLost)},
		{ProfilesFailuresOOM, "failures_oom", U32, unsafe.Offsetof(ProfileRow{}.FailuresOOM)},
		{ProfilesFailuresProtocol, "failures_protocol", U32, unsafe.Offsetof(ProfileRow{}.FailuresProtocol)},
		{ProfilesFailuresOperator, "failures_operator", U32, unsafe.Offsetof(ProfileRow{}.FailuresOperator)},
		{ProfilesDraining, "draining", U32, unsafe.Offsetof(ProfileRow{}.Draining)},
		{ProfilesCondemned, "condemned", U32, unsafe.Offsetof(ProfileRow{}.Condemned)},
		{ProfilesUnseen, "unseen", U32, unsafe.Offsetof(ProfileRow{}.Unseen)},
	}},
	{id: TableExecutors, name: "executors", stride: unsafe.Sizeof(ExecutorRow{}), columns: []column{
		{ExecutorsID, "id", U64, unsafe.Offsetof(ExecutorRow{}.ID)},
		{ExecutorsProfile, "profile", U32, unsafe.Offsetof(ExecutorRow{}.Profile)},
		{ExecutorsPhase, "phase", U8, unsafe.Offsetof(ExecutorRow{}.Phase)},
		{ExecutorsPhaseSinceMS, "phase_since_ms", I64, unsafe.Offsetof(ExecutorRow{}.PhaseSinceMS)},
		{ExecutorsCreatedAgoMS, "created_ago_ms", I64, unsafe.Offsetof(ExecutorRow{}.CreatedAgoMS)},
		{ExecutorsFlags, "flags", U32, unsafe.Offsetof(ExecutorRow{}.Flags)},
		{ExecutorsBusySlots, "busy_slots", U32, unsafe.Offsetof(ExecutorRow{}.BusySlots)},
		{ExecutorsSlots, "slots", U32, unsafe.Offsetof(ExecutorRow{}.Slots)},
		{ExecutorsIdleSinceMS, "idle_since_ms", I64, unsafe.Offsetof(ExecutorRow{}.IdleSinceMS)},
		{ExecutorsTasksDone, "tasks_done", U32, unsafe.Offsetof(ExecutorRow{}.TasksDone)},
		{ExecutorsTasksFailed, "tasks_failed", U32, unsafe.Offsetof(ExecutorRow{}.TasksFailed)},
		{ExecutorsMeanTaskMS, "mean_task_ms", I64, unsafe.Offsetof(ExecutorRow{}.MeanTaskMS)},
		{ExecutorsOutputBytesHeld, "output_bytes_held", U64, unsafe.Offsetof(ExecutorRow{}.OutputBytesHeld)},
		{ExecutorsPeakMemoryBytes, "peak_memory_bytes", U64, unsafe.Offsetof(ExecutorRow{}.PeakMemoryBytes)},
		{ExecutorsDiskBytes, "disk_bytes", U64, unsafe.Offsetof(ExecutorRow{}.DiskBytes)},
		{ExecutorsOutputBytesWritten, "output_bytes_written", U64, unsafe.Offsetof(ExecutorRow{}.OutputBytesWritten)},
		{ExecutorsTotalTaskMS, "total_task_ms", I64, unsafe.Offsetof(ExecutorRow{}.TotalTaskMS)},
		{ExecutorsPendingReason, "pending_reason", U8, unsafe.Offsetof(ExecutorRow{}.PendingReason)},
		{ExecutorsRestarts, "restarts", U32, unsafe.Offsetof(ExecutorRow{}.Restarts)},
		{ExecutorsNode, "node", Dict, unsafe.Offsetof(ExecutorRow{}.Node)},
		{ExecutorsZone, "zone", Dict, unsafe.Offsetof(ExecutorRow{}.Zone)},
		{ExecutorsCapacityType, "capacity_type", Dict, unsafe.Offsetof(ExecutorRow{}.CapacityType)},
		{ExecutorsCost, "cost", I64, unsafe.Offsetof(ExecutorRow{}.Cost)},
	}},
	{id: TableCreate, name: "create", stride: unsafe.Sizeof(Create{}), columns: []column{
		{CreateProfile, "profile", U32, unsafe.Offsetof(Create{}.Profile)},
		{CreateCount, "count", U32, unsafe.Offsetof(Create{}.Count)},
		{CreateZone, "zone", Dict, unsafe.Offsetof(Create{}.Zone)},
		{CreateCapacityType, "capacity_type", Dict, unsafe.Offsetof(Create{}.CapacityType)},
		{CreateNode, "node", Dict, unsafe.Offsetof(Create{}.Node)},
		{CreateReason, "reason", Dict, unsafe.Offsetof(Create{}.Reason)},
	}},
	{id: TableRelease, name: "release", stride: unsafe.Sizeof(Release{}), columns: []column{
		{ReleaseExecutor, "executor", U64, unsafe.Offsetof(Release{}.Executor)},
		{ReleaseModeColumn, "mode", U8, unsafe.Offsetof(Release{}.Mode)},
		{ReleaseReason, "reason", Dict, unsafe.Offsetof(Release{}.Reason)},
	}},
	{id: TableResult, name: "result", stride: unsafe.Sizeof(resultRow{}), columns: []column{
		{ResultNextCallMS, "next_call_ms", I64, unsafe.Offsetof(resultRow{}.NextCallMS)},
		{ResultStateVersion, "state_version", U32, unsafe.Offsetof(resultRow{}.StateVersion)},
		{ResultState, "state", Bytes, unsafe.Offsetof(resultRow{}.State)},
		{ResultNote, "note", Bytes, unsafe.Offsetof(resultRow{}.Note)},
	}},
}
