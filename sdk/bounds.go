package sdk

import "github.com/retinue-sched/retinue/hostabi"

// Clamp returns n, but not below least and not above most; where these conflict, most wins.
func Clamp(n, least, most uint32) uint32 { return min(max(n, least), most) }

// Minus returns a - b, or 0 where that is below 0.
func Minus(a, b uint32) uint32 {
	if a < b {
		return 0
	}
	return a - b
}

// Headroom returns how many executors a profile has room for, by its batch size, its ceiling, its maximum, its
// bound on pending ones and the end of its backoff. The bounds that profiles share are Share's.
func Headroom(v *View, f *Fleet) uint32 {
	p := &v.Profiles
	if p.BackoffUntilMS()[f.Row] > v.Decision.ElapsedMS() {
		return 0
	}
	room := p.BatchSize()[f.Row]
	// An executor that leaves still counts for the ceiling, unless the daemon itself has ordered its end.
	room = min(room, Minus(p.Ceiling()[f.Row], f.Live()+f.Draining+f.Terminating))
	if most := p.Max()[f.Row]; most != hostabi.None {
		room = min(room, Minus(most, f.Live()+f.Leaving()))
	}
	if most := p.MaxPending()[f.Row]; most > 0 {
		room = min(room, Minus(most, f.NotRunning()))
	}
	return room
}

// Share cuts wishes, one a fleet, down to what the bounds of the whole application leave: its bound on pending
// executors, split evenly over the fleets that wish for some, and then what it may ever create, first come first
// served in the order of ids.
func Share(v *View, fleets []Fleet, wishes []uint32) {
	if most := v.Decision.MaxPending(); most > 0 {
		notRunning := uint32(0)
		for i := range fleets {
			notRunning += fleets[i].NotRunning()
		}
		Split(Minus(most, notRunning), wishes)
	}
	left := v.Profiles.LifetimeLeft()
	spent := uint32(0)
	for i := range fleets {
		if most := left[fleets[i].Row]; most != hostabi.None {
			wishes[i] = min(wishes[i], Minus(most, spent))
		}
		spent += wishes[i]
	}
}

// Split cuts wishes down so that their sum is at most total. Each gets an even part, and what one does not need goes
// to the others; what cannot be divided goes to the first ones.
func Split(total uint32, wishes []uint32) {
	given := make([]uint32, len(wishes))
	for open := unmet(given, wishes); total > 0 && open > 0; open = unmet(given, wishes) {
		part := max(total/open, 1) // at the end fewer are left than wish for one
		for i := range wishes {
			more := min(part, wishes[i]-given[i], total)
			given[i] += more
			total -= more
		}
	}
	copy(wishes, given)
}

// unmet returns how many wishes are not met yet.
func unmet(given, wishes []uint32) (n uint32) {
	for i := range wishes {
		if given[i] < wishes[i] {
			n++
		}
	}
	return n
}
