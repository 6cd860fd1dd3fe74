package sdk

import (
	"cmp"
	"math"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
)

// MostAtOnce is how many executors of a profile Candidates finds at most: letting go of them changes the fleet, and then the policy is asked again.
const MostAtOnce = 1000

// Candidates finds the executors of fleets, which Fleets made of the same view, that a policy may cancel or drain: as many as the fleets' Excess
// and IdleBy ask for. It lowers an Excess above MostAtOnce to that. Executors of a profile that is not in the view are left out.
//
// It looks at every executor. Call it only if there is something to let go: the counts in fleets tell.
func Candidates(v *View, fleets []Fleet) {
	s := search{
		fleets: fleets, ids: v.Executors.ID(), profiles: v.Executors.Profile(), phases: v.Executors.Phase(),
		flags: v.Executors.Flags(), busy: v.Executors.BusySlots(), since: v.Executors.IdleSinceMS(),
	}
	for i := range fleets {
		f := &fleets[i]
		f.Excess = min(f.Excess, MostAtOnce)
		f.Unstarted, f.Idle, f.NextIdle = f.Unstarted[:0], slices.Grow(f.Idle[:0], int(min(f.Excess, f.Running))), -1
	}
	s.run()
	for i := range fleets {
		s.settle(&fleets[i])
	}
}

// search is one look at all executors.
type search struct {
	fleets   []Fleet
	ids      []uint64
	profiles []uint32
	phases   []hostabi.Phase
	flags    []hostabi.Flags
	busy     []uint32
	since    []int64
}

// run looks at all executors, those of one profile that stand together at once.
func (s *search) run() {
	n := len(s.profiles)
	for from, to := 0, 0; from < n; from = to {
		id := s.profiles[from]
		to = from + same(s.profiles[from:])
		at, ok := slices.BinarySearchFunc(s.fleets, id, func(f Fleet, id uint32) int { return cmp.Compare(f.ID, id) })
		if ok && s.fleets[at].Excess > 0 {
			s.look(&s.fleets[at], from, to)
		}
	}
}

// same returns how many of the first numbers are equal. There is at least one.
func same(numbers []uint32) int {
	n := 1
	for ; n+stride <= len(numbers); n += stride {
		next := numbers[n : n+stride : n+stride]
		if (next[0]^numbers[0])|(next[1]^numbers[0])|(next[2]^numbers[0])|(next[3]^numbers[0])|
			(next[4]^numbers[0])|(next[5]^numbers[0])|(next[6]^numbers[0])|(next[7]^numbers[0]) != 0 {
			break
		}
	}
	for n < len(numbers) && numbers[n] == numbers[0] {
		n++
	}
	return n
}

// stride is how many executors are looked at together. In a sandbox each jump costs fuel and time, more than everything else that happens to an
// executor of which nothing is wanted; so there is one for many.
const stride = 8

// look adds the candidates among some rows to the lists of their fleet.
func (s *search) look(f *Fleet, from, to int) {
	phases := s.phases[from:to]
	n := len(phases)
	flags, busy, since, ids := s.flags[from:to][:n], s.busy[from:to][:n], s.since[from:to][:n], s.ids[from:to][:n]
	row := 0
	for l := s.limit(f); row+stride <= n; row += stride {
		p, g, b := phases[row:row+stride:row+stride], flags[row:row+stride:row+stride], busy[row:row+stride:row+stride]
		t, i := since[row:row+stride:row+stride], ids[row:row+stride:row+stride]
		if mayGo(p[0], g[0], b[0])&l.admits(p[0], t[0], i[0])|mayGo(p[1], g[1], b[1])&l.admits(p[1], t[1], i[1])|
			mayGo(p[2], g[2], b[2])&l.admits(p[2], t[2], i[2])|mayGo(p[3], g[3], b[3])&l.admits(p[3], t[3], i[3])|
			mayGo(p[4], g[4], b[4])&l.admits(p[4], t[4], i[4])|mayGo(p[5], g[5], b[5])&l.admits(p[5], t[5], i[5])|
			mayGo(p[6], g[6], b[6])&l.admits(p[6], t[6], i[6])|mayGo(p[7], g[7], b[7])&l.admits(p[7], t[7], i[7]) != 0 {
			l = s.add(f, from+row, from+row+stride)
		}
	}
	s.add(f, from+row, to)
	if uint32(len(f.Idle)) < f.Excess {
		s.findNext(f, from, to)
	}
}

// limit is what an idle executor must stand before to be among those that are found: in the order of the time since which they have been idle, and
// of their ids.
type limit struct {
	since int64
	id    uint64
}

// limit returns the limit of a fleet.
func (s *search) limit(f *Fleet) limit {
	if uint32(len(f.Idle)) == f.Excess {
		return limit{s.since[f.Idle[0]], s.ids[f.Idle[0]]}
	}
	return limit{f.IdleBy, math.MaxUint64}
}

// admits returns 1 for an executor that does not run, and for one that stands before the limit, and 0 for the others. It is one expression without
// a jump.
func (l limit) admits(phase hostabi.Phase, since int64, id uint64) uint32 {
	rests, apart := uint64(phase)^uint64(hostabi.PhaseRunning), uint64(since^l.since)
	earlier := uint64(since&^l.since) | ^apart&uint64(since-l.since) // its highest bit: since < l.since
	lower := ^id&l.id | ^(id^l.id)&(id-l.id)                         // its highest bit: id < l.id
	return uint32((-rests | earlier | ^(apart|-apart)&lower) >> 63)
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

// add adds the candidates among some rows, one by one, and returns the limit from then on.
func (s *search) add(f *Fleet, from, to int) limit {
	l := s.limit(f)
	for row := from; row < to; row++ {
		switch {
		case mayGo(s.phases[row], s.flags[row], s.busy[row]) == 0:
		case s.phases[row] != hostabi.PhaseRunning:
			s.addUnstarted(f, row)
		case s.since[row] >= 0 && l.admits(s.phases[row], s.since[row], s.ids[row]) != 0: // below 0, the daemon does not know: it has only just registered
			s.addIdle(f, row)
			l = s.limit(f)
		}
	}
	return l
}

// findNext looks among some rows for the executor that is the next to have been idle for long enough.
func (s *search) findNext(f *Fleet, from, to int) {
	for row := from; row < to; row++ {
		if t := s.since[row]; t > f.IdleBy && t >= 0 && s.phases[row] == hostabi.PhaseRunning && (f.NextIdle < 0 || t < f.NextIdle) &&
			mayGo(hostabi.PhaseRunning, s.flags[row], s.busy[row]) != 0 {
			f.NextIdle = t
		}
	}
}

// addUnstarted takes a requested or pending executor in.
func (s *search) addUnstarted(f *Fleet, row int) {
	if s.flags[row]&(leaves|hostabi.FlagRegistered) == 0 && (s.phases[row] == hostabi.PhaseRequested || s.phases[row] == hostabi.PhasePending) {
		f.Unstarted = append(f.Unstarted, uint32(row))
	}
}

// addIdle takes an idle executor in, and the one out that has been idle for the shortest time if that is one too many. While the list is full it is
// a heap with that one first.
func (s *search) addIdle(f *Fleet, row int) {
	if uint32(len(f.Idle)) == f.Excess {
		f.Idle[0] = uint32(row)
		s.sink(f.Idle, 0)
		return
	}
	if f.Idle = append(f.Idle, uint32(row)); uint32(len(f.Idle)) == f.Excess {
		s.heapify(f.Idle)
	}
}

// longer reports whether an executor has been idle for longer than another; of the same time it is the one with the lower id.
func (s *search) longer(a, b uint32) bool {
	if s.since[a] != s.since[b] {
		return s.since[a] < s.since[b]
	}
	return s.ids[a] < s.ids[b]
}

// heapify puts rows into an order in which each has been idle for no longer than the two at twice its place.
func (s *search) heapify(rows []uint32) {
	for at := len(rows)/2 - 1; at >= 0; at-- {
		s.sink(rows, at)
	}
}

// sink puts the row at a place where it belongs among those below.
func (s *search) sink(rows []uint32, at int) {
	for {
		next := 2*at + 1
		if next >= len(rows) {
			return
		}
		if next+1 < len(rows) && s.longer(rows[next], rows[next+1]) {
			next++
		}
		if !s.longer(rows[at], rows[next]) {
			return
		}
		rows[at], rows[next] = rows[next], rows[at]
		at = next
	}
}

// settle puts what was found into its order.
func (s *search) settle(f *Fleet) {
	byID := func(a, b uint32) int { return cmp.Compare(s.ids[a], s.ids[b]) }
	if !slices.IsSortedFunc(f.Unstarted, byID) {
		slices.SortFunc(f.Unstarted, byID)
	}
	if uint32(len(f.Idle)) == f.Excess {
		f.NextIdle = -1
	}
	s.heapify(f.Idle)
	for end := len(f.Idle) - 1; end > 0; end-- {
		f.Idle[0], f.Idle[end] = f.Idle[end], f.Idle[0]
		s.sink(f.Idle[:end], 0)
	}
}
