package allocator

import (
	"slices"
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// Scene is what a question or an answer is about: the fleet, and how each profile is.
type Scene struct {
	Fleet    Fleet
	Shown    func() *snapshot.Snapshot // the fleet as policies are shown it
	Profiles []Circumstance            // as Config.Profiles
}

// Circumstance is what the rest of the application knows of one profile.
type Circumstance struct {
	Demand   task.Demand
	Blocked  string           // why nothing may be created now; empty: nothing is in the way
	AtOnce   uint32           // most creations by one decision; 0: no bound
	Backoff  snapshot.Instant // creations make no sense before; 0: there is no back-off
	Failures Failures
}

// Failures is how many executors of a profile failed lately, by class.
type Failures struct {
	Application, Image, Quota, Admission, Unschedulable, Disruption, NodeLost, OOM, Protocol, Operator uint32
}

// Input is what a policy is asked about: values that do not change, so that the view can be encoded away from the state machine.
type Input struct {
	Hook     hostabi.Hook
	Decision hostabi.DecisionRow
	Profiles []hostabi.ProfileRow
	Snapshot *snapshot.Snapshot
	Now      snapshot.Instant
	Origin   snapshot.Instant // when the application began: the zero of all times in the view
}

// View fills v with what a policy is shown, as far as keep asks for it; the rest of v's executors is undefined. It allocates only when v must
// grow.
func (in *Input) View(v *hostabi.View, keep hostabi.Projection) {
	v.Hook, v.Decision = in.Hook, in.Decision
	v.Profiles = append(v.Profiles[:0], in.Profiles...)
	v.Executors = slices.Grow(v.Executors[:0], in.Snapshot.Len())[:in.Snapshot.Len()]
	parts := partsOf(keep)
	if parts == 0 {
		return // their number is enough
	}
	i := 0
	in.Snapshot.Each(func(e *snapshot.Executor) {
		in.show(&v.Executors[i], e, parts)
		i++
	})
}

// parts are what a view has of each executor. What is not asked for is not even looked at: in a large fleet that is most of what a view costs.
type parts uint8

const (
	partState parts = 1 << iota
	partWork
	partPlace
)

func partsOf(keep hostabi.Projection) parts {
	var needed parts
	for column := hostabi.ExecutorsID; column <= hostabi.ExecutorsCost; column++ {
		if keep.Keeps(hostabi.TableExecutors, column) {
			needed |= partWith(column)
		}
	}
	return needed
}

func partWith(column hostabi.ColumnID) parts {
	switch column {
	case hostabi.ExecutorsID, hostabi.ExecutorsProfile, hostabi.ExecutorsPhase, hostabi.ExecutorsPhaseSinceMS, hostabi.ExecutorsCreatedAgoMS,
		hostabi.ExecutorsFlags, hostabi.ExecutorsBusySlots, hostabi.ExecutorsSlots, hostabi.ExecutorsIdleSinceMS:
		return partState
	case hostabi.ExecutorsPendingReason, hostabi.ExecutorsRestarts, hostabi.ExecutorsNode, hostabi.ExecutorsZone, hostabi.ExecutorsCapacityType:
		return partPlace
	default:
		return partWork
	}
}

// show makes row that of one executor, as far as parts go. It sets the fields one by one: a row that is made first and then copied takes twice as
// long.
func (in *Input) show(row *hostabi.ExecutorRow, e *snapshot.Executor, parts parts) {
	if parts&partState != 0 {
		in.showState(row, e)
	}
	if parts&partWork != 0 {
		showWork(row, &e.Load)
	}
	if parts&partPlace != 0 {
		row.PendingReason, row.Restarts = hostabi.PendingReason(e.Wait), e.Restarts
		row.Node, row.Zone, row.CapacityType = e.Node, e.Zone, e.Capacity
	}
}

func (in *Input) showState(row *hostabi.ExecutorRow, e *snapshot.Executor) {
	l := &e.Load
	row.ID, row.Profile, row.Phase, row.Flags = uint64(e.ID), uint32(e.Profile), hostabi.Phase(e.Phase), flags(e)
	row.PhaseSinceMS, row.CreatedAgoMS = whole(e.Since.Sub(in.Origin)), whole(in.Now.Sub(e.Asked))
	row.BusySlots, row.Slots, row.IdleSinceMS = l.Busy, l.Slots, -1
	if l.Registered && l.Busy == 0 {
		row.IdleSinceMS = whole(l.IdleSince.Sub(in.Origin))
	}
}

func showWork(row *hostabi.ExecutorRow, l *snapshot.Load) {
	row.TasksDone, row.TasksFailed, row.TotalTaskMS, row.MeanTaskMS = l.Done, l.Failed, whole(l.TaskTime), 0
	row.PeakMemoryBytes, row.DiskBytes = l.Memory, l.Disk
	row.OutputBytesHeld, row.OutputBytesWritten, row.Cost = 0, 0, 0 // not known
	if n := int64(l.Done) + int64(l.Failed); n > 0 {
		row.MeanTaskMS = int64(l.TaskTime) / n // nanoseconds are millionths of a millisecond
	}
}

// flags leaves FlagHoldsOutput clear: there is nothing yet that stores output.
func flags(e *snapshot.Executor) hostabi.Flags {
	return when(e.Load.Registered, hostabi.FlagRegistered) | when(e.Load.Draining, hostabi.FlagDecommissioning) |
		when(e.Condemned, hostabi.FlagCondemned)
}

func when(holds bool, f hostabi.Flags) hostabi.Flags {
	if holds {
		return f
	}
	return 0
}

// input is the question that is in flight.
func (a *Allocator) input(now snapshot.Instant, s Scene) *Input {
	in := &Input{
		Hook: a.flight.hook, Now: now, Origin: a.origin, Snapshot: s.Shown(),
		Decision: hostabi.DecisionRow{
			ID: a.flight.number, ElapsedMS: whole(now.Sub(a.origin)), WallMS: a.cfg.Epoch + whole(time.Duration(now)),
			Seed: mix(a.cfg.Seed, a.flight.number), Application: a.cfg.Application, Trigger: a.flight.trigger,
			APIBudget: hostabi.None, MaxPending: a.cfg.MaxPending, StateVersion: a.stateVersion, State: a.state,
		},
		Profiles: make([]hostabi.ProfileRow, len(a.cfg.Profiles)),
	}
	for i := range a.cfg.Profiles {
		in.Profiles[i] = a.row(now, &a.cfg.Profiles[i], s.Fleet, &s.Profiles[i])
	}
	return in
}

// row is what a policy is shown of one profile.
func (a *Allocator) row(now snapshot.Instant, p *Profile, fleet Fleet, c *Circumstance) hostabi.ProfileRow {
	counts, target, f := fleet.Counts(p.ID), fleet.Target(p.ID), &c.Failures
	row := hostabi.ProfileRow{
		ID: uint32(p.ID), Name: p.Name, Target: target, Floor: p.Min, Ceiling: p.ceiling(a.cfg.Mode, target), Max: p.most(),
		Requested: counts.ByPhase[snapshot.Requested], Pending: counts.ByPhase[snapshot.Pending],
		Running: counts.ByPhase[snapshot.Running], Terminating: counts.ByPhase[snapshot.Terminating],
		Registered: counts.Registered, Busy: counts.Busy, Idle: counts.Registered - counts.Busy, Slots: p.Slots,
		QueuedTasks: c.Demand.Queued, RunningTasks: c.Demand.Held, OldestQueuedMS: -1,
		MaxPending: p.MaxPending, BatchSize: atOnce(p.BatchSize, c.AtOnce), LifetimeLeft: hostabi.None, Mode: hostabi.Mode(a.cfg.Mode),
		CreationTimeoutMS: whole(p.CreationTimeout), IdleTimeoutMS: whole(p.IdleTimeout), ReleaseIdleMS: whole(p.ReleaseIdle),
		FailuresApplication: f.Application, FailuresImage: f.Image, FailuresQuota: f.Quota, FailuresAdmission: f.Admission,
		FailuresUnschedulable: f.Unschedulable, FailuresDisruption: f.Disruption, FailuresNodeLost: f.NodeLost, FailuresOOM: f.OOM,
		FailuresProtocol: f.Protocol, FailuresOperator: f.Operator,
		Draining: counts.Draining, Condemned: counts.Condemned, Unseen: counts.Unseen,
	}
	if c.Demand.Queued > 0 {
		row.OldestQueuedMS = whole(now.Sub(c.Demand.Oldest))
	}
	if left := a.lifetimeLeft(); a.cfg.MaxLifetime > 0 {
		row.LifetimeLeft = uint32(min(left, hostabi.None-1))
	}
	if c.Backoff > now {
		row.BackoffUntilMS = whole(c.Backoff.Sub(a.origin) + time.Millisecond - 1)
	}
	return row
}

// whole is a duration in whole milliseconds, rounded down.
func whole(d time.Duration) int64 { return d.Milliseconds() }

// mix is a number that looks random and follows from two others.
func mix(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
