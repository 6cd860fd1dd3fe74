package sdk

import (
	"cmp"
	"slices"
)

// Fleet is a profile and how many executors it has, as the view's table of profiles says.
type Fleet struct {
	Row int    // of the profile in the view
	ID  uint32 // of the profile

	Requested   uint32 // asked for and not seen, registered or not
	Unseen      uint32 // of Requested: neither registered nor draining, so there is no sign of life at all
	Pending     uint32
	Running     uint32
	Draining    uint32 // of Requested, Pending and Running: finish what they have and then leave
	Terminating uint32 // the cluster ends them, unasked
	Condemned   uint32 // the daemon has ordered their end

	// What Candidates looks for. Fleets leaves it empty.
	Excess uint32 // how many executors may go at most; of a fleet without excess nothing is found
	IdleBy int64  // an executor may go if it has been idle since this time, on the scale of elapsed_ms, or longer

	// What Candidates finds: rows of the view's executors.
	Unstarted []uint32 // requested or pending, not registered, and meant to stay; in the order of their ids
	// Idle are up to Excess running, registered executors without a task, without output that they hold, and meant to stay, that have been idle
	// for long enough: the longest idle first, those of one time in the order of their ids.
	Idle []uint32
	// NextIdle is since when the longest idle of those has been idle that have not been for long enough; -1 with none, or if there is no need of it.
	NextIdle int64
}

// Live returns how many executors count for the target.
func (f *Fleet) Live() uint32 { return Minus(f.NotRunning()+f.Running, f.Draining) }

// Leaving returns how many executors are still there and will not stay.
func (f *Fleet) Leaving() uint32 { return f.Draining + f.Terminating + f.Condemned }

// NotRunning returns how many executors count for the bounds on pending ones.
func (f *Fleet) NotRunning() uint32 { return f.Requested + f.Pending }

// Fleets returns the profiles of a view, sorted by id. It looks at no executor, so what it costs does not depend on
// how many there are. It writes into buffer, whose memory it reuses.
func Fleets(v *View, buffer []Fleet) []Fleet {
	p := &v.Profiles
	ids := p.ID()
	requested, unseen, pending, running := p.Requested(), p.Unseen(), p.Pending(), p.Running()
	draining, terminating, condemned := p.Draining(), p.Terminating(), p.Condemned()
	fleets := slices.Grow(buffer[:0], len(ids))[:len(ids)]
	for row, id := range ids {
		f := &fleets[row]
		*f = Fleet{
			Row: row, ID: id, Requested: requested[row], Unseen: unseen[row], Pending: pending[row], Running: running[row],
			Draining: draining[row], Terminating: Minus(terminating[row], condemned[row]), Condemned: condemned[row],
			Unstarted: f.Unstarted[:0], Idle: f.Idle[:0], NextIdle: -1,
		}
	}
	slices.SortFunc(fleets, func(a, b Fleet) int { return cmp.Compare(a.ID, b.ID) })
	return fleets
}
