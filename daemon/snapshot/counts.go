package snapshot

// Counts is how many executors of a profile are in which phase; terminal ones that are not forgotten yet are included in ByPhase.
type Counts struct {
	ByPhase      [Lost + 1]uint32
	Registered   uint32 // live and registered
	Busy         uint32 // registered with a busy slot
	BusySlots    uint32
	Slots        uint32 // of registered executors
	Unregistered uint32 // Requested or Pending, and not registered: what Spark calls outstanding
	Unseen       uint32 // of Unregistered: Requested and not draining
	Condemned    uint32 // live and condemned; all of them are Terminating
	Draining     uint32 // live, not Terminating, and draining
}

// Live is how many have not ended, terminating ones included.
func (c Counts) Live() uint32 {
	return c.ByPhase[Requested] + c.ByPhase[Pending] + c.ByPhase[Running] + c.ByPhase[Terminating]
}

// Starting is how many were asked for and have neither started nor been told to end.
func (c Counts) Starting() uint32 { return c.ByPhase[Requested] + c.ByPhase[Pending] }

// Staying is how many are live and not on their way out.
func (c Counts) Staying() uint32 { return c.Starting() + c.ByPhase[Running] - c.Draining }

// What add is given: an executor comes into the count, or leaves it.
const (
	enters = uint32(1)
	leaves = ^uint32(0) // minus one: counts are sums, and sums wrap
)

func (c *Counts) add(e *Executor, times uint32) {
	c.ByPhase[e.Phase] += times
	if !e.Live() {
		return
	}
	if e.Condemned {
		c.Condemned += times
	}
	if e.Load.Draining && e.Phase != Terminating {
		c.Draining += times
	}
	if !e.Load.Registered {
		if e.Starting() {
			c.Unregistered += times
		}
		if e.Phase == Requested && !e.Load.Draining {
			c.Unseen += times
		}
		return
	}
	c.Registered += times
	c.Slots += times * e.Load.Slots
	c.BusySlots += times * e.Load.Busy
	if e.Load.Busy > 0 {
		c.Busy += times
	}
}
