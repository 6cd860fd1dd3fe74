package sdk

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
)

// Candidates fills the lists of fleets, which Fleets made of the same view: the executors that a policy may cancel
// or drain, in the order of their ids. Executors of a profile that is not in the view are left out.
//
// It looks at every executor. Call it only if there is something to let go: the counts in fleets tell.
func Candidates(v *View, fleets []Fleet) {
	s := search{
		fleets: fleets, ids: v.Executors.ID(), profiles: v.Executors.Profile(),
		phases: v.Executors.Phase(), flags: v.Executors.Flags(), busy: v.Executors.BusySlots(),
	}
	for i := range fleets {
		fleets[i].Unstarted, fleets[i].IdleRunning = fleets[i].Unstarted[:0], fleets[i].IdleRunning[:0]
	}
	s.run()
	if s.unsorted {
		s.sort()
	}
}

// search is one look at all executors.
type search struct {
	fleets   []Fleet
	last     int // the fleet of the executor before: those of one profile mostly stand together
	ids      []uint64
	profiles []uint32
	phases   []hostabi.Phase
	flags    []hostabi.Flags
	busy     []uint32
	unsorted bool   // candidates came in another order than that of their ids
	previous uint64 // id of the last candidate
}

// stride is how many executors are looked at together. In a sandbox each jump costs a check of the deadline, and
// more than everything else that happens to an executor of which nothing is wanted; so there is one for many.
const stride = 8

// run adds all candidates.
func (s *search) run() {
	n := len(s.phases)
	phases, flags, busy := s.phases, s.flags[:n], s.busy[:n]
	row := 0
	for ; row+stride <= n; row += stride {
		p, f, b := phases[row:row+stride:row+stride], flags[row:row+stride:row+stride], busy[row:row+stride:row+stride]
		if mayGo(p[0], f[0], b[0])|mayGo(p[1], f[1], b[1])|mayGo(p[2], f[2], b[2])|mayGo(p[3], f[3], b[3])|
			mayGo(p[4], f[4], b[4])|mayGo(p[5], f[5], b[5])|mayGo(p[6], f[6], b[6])|mayGo(p[7], f[7], b[7]) != 0 {
			s.addAll(row, row+stride)
		}
	}
	s.addAll(row, n)
}

// leaves are the flags of an executor that is on its way out.
const leaves = hostabi.FlagDecommissioning | hostabi.FlagCondemned

// mayGo returns 1 for a candidate, also for a requested or pending executor that turns out to be none, and 0 for
// the others. It is one expression without a jump.
func mayGo(phase hostabi.Phase, flags hostabi.Flags, busy uint32) uint32 {
	// Zero if the executor is idle: only then does taking one away set a highest bit that was not set.
	idle := busy | uint32(phase^hostabi.PhaseRunning) | uint32(flags&(leaves|hostabi.FlagRegistered|hostabi.FlagHoldsOutput)^hostabi.FlagRegistered)
	return (uint32(phase) - uint32(hostabi.PhaseRunning) | (idle-1)&^idle) >> 31
}

// addAll adds the candidates among some rows.
func (s *search) addAll(from, to int) {
	for row := from; row < to; row++ {
		if mayGo(s.phases[row], s.flags[row], s.busy[row]) != 0 {
			s.add(row)
		}
	}
}

// add adds an executor to the list that it belongs to, if any.
func (s *search) add(row int) {
	if s.last >= len(s.fleets) || s.fleets[s.last].ID != s.profiles[row] {
		i, ok := slices.BinarySearchFunc(s.fleets, s.profiles[row], func(f Fleet, id uint32) int { return cmp.Compare(f.ID, id) })
		if !ok {
			return
		}
		s.last = i
	}
	f := &s.fleets[s.last]
	switch s.phases[row] {
	case hostabi.PhaseRunning:
		f.IdleRunning = append(f.IdleRunning, row)
	case hostabi.PhaseRequested, hostabi.PhasePending:
		if s.flags[row]&(leaves|hostabi.FlagRegistered) != 0 {
			return
		}
		f.Unstarted = append(f.Unstarted, row)
	default: // a phase that this version does not know
		return
	}
	s.unsorted = s.unsorted || s.ids[row] < s.previous
	s.previous = s.ids[row]
}

// sort puts the lists in the order of the executors' ids.
func (s *search) sort() {
	byID := func(a, b int) int { return cmp.Compare(s.ids[a], s.ids[b]) }
	for i := range s.fleets {
		slices.SortFunc(s.fleets[i].Unstarted, byID)
		slices.SortFunc(s.fleets[i].IdleRunning, byID)
	}
}
