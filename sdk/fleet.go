package sdk

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
)

// Fleet is a profile with its executors, counted, each at most once save in Unseen and the lists.
type Fleet struct {
	Row int    // of the profile in the view
	ID  uint32 // of the profile

	Requested   uint32 // asked for and not seen, registered or not
	Unseen      uint32 // of Requested: not registered either, so there is no sign of life at all
	Pending     uint32
	Running     uint32 // and those in a phase that this version does not know
	Draining    uint32 // finish what they have and then leave
	Terminating uint32 // the cluster ends them, unasked
	Condemned   uint32 // the daemon has ordered their end

	drainingUnstarted uint32 // of Draining: requested or pending

	Unstarted   []int // rows of executors that are requested or pending, and not registered
	IdleRunning []int // rows of running, registered executors without a task and without output that they hold
}

// Live returns how many executors count for the target.
func (f *Fleet) Live() uint32 { return f.Requested + f.Pending + f.Running }

// Leaving returns how many executors are still there and will not stay.
func (f *Fleet) Leaving() uint32 { return f.Draining + f.Terminating + f.Condemned }

// NotRunning returns how many executors count for the bounds on pending ones.
func (f *Fleet) NotRunning() uint32 { return f.Requested + f.Pending + f.drainingUnstarted }

// Fleets returns the profiles of a view, sorted by id, with their executors counted. Executors of a profile
// that is not in the view are left out. Rows are in the order of the executors' ids. It writes into buffer,
// whose memory it reuses.
func Fleets(v *View, buffer []Fleet) []Fleet {
	fleets := emptyFleets(v, buffer)
	ids, profiles := v.Executors.ID(), v.Executors.Profile()
	phases, flags := v.Executors.Phase(), v.Executors.Flags()
	busy := v.Executors.BusySlots()
	last := 0 // executors of one profile mostly stand together
	for row := range ids {
		if last >= len(fleets) || fleets[last].ID != profiles[row] {
			i, ok := slices.BinarySearchFunc(fleets, profiles[row], func(f Fleet, id uint32) int { return cmp.Compare(f.ID, id) })
			if !ok {
				continue
			}
			last = i
		}
		fleets[last].count(row, phases[row], flags[row], busy[row])
	}
	if !slices.IsSorted(ids) {
		sortRows(fleets, ids)
	}
	return fleets
}

// emptyFleets returns the profiles of a view without executors.
func emptyFleets(v *View, buffer []Fleet) []Fleet {
	ids := v.Profiles.ID()
	fleets := slices.Grow(buffer[:0], len(ids))[:len(ids)]
	for row, id := range ids {
		f := &fleets[row]
		*f = Fleet{Row: row, ID: id, Unstarted: f.Unstarted[:0], IdleRunning: f.IdleRunning[:0]}
	}
	slices.SortFunc(fleets, func(a, b Fleet) int { return cmp.Compare(a.ID, b.ID) })
	return fleets
}

// count adds one executor.
func (f *Fleet) count(row int, phase hostabi.Phase, flags hostabi.Flags, busy uint32) {
	registered := flags.Has(hostabi.FlagRegistered)
	switch {
	case phase.Terminal() && phase <= hostabi.PhaseLost:
	case flags.Has(hostabi.FlagCondemned):
		f.Condemned++
	case phase == hostabi.PhaseTerminating:
		f.Terminating++
	case flags.Has(hostabi.FlagDecommissioning):
		f.Draining++
		if phase == hostabi.PhaseRequested || phase == hostabi.PhasePending {
			f.drainingUnstarted++
		}
	case phase == hostabi.PhaseRequested || phase == hostabi.PhasePending:
		f.countUnstarted(row, phase, registered)
	default:
		f.Running++
		if phase == hostabi.PhaseRunning && registered && busy == 0 && !flags.Has(hostabi.FlagHoldsOutput) {
			f.IdleRunning = append(f.IdleRunning, row)
		}
	}
}

// countUnstarted adds one that does not run yet.
func (f *Fleet) countUnstarted(row int, phase hostabi.Phase, registered bool) {
	if phase == hostabi.PhasePending {
		f.Pending++
	} else {
		f.Requested++
	}
	if registered {
		return
	}
	f.Unstarted = append(f.Unstarted, row)
	if phase == hostabi.PhaseRequested {
		f.Unseen++
	}
}

// sortRows puts the rows of each fleet in the order of the executors' ids, for views that are not sorted.
func sortRows(fleets []Fleet, ids []uint64) {
	byID := func(a, b int) int { return cmp.Compare(ids[a], ids[b]) }
	for i := range fleets {
		slices.SortFunc(fleets[i].Unstarted, byID)
		slices.SortFunc(fleets[i].IdleRunning, byID)
	}
}
