package allocator

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// Mode is how far a policy's word goes.
type Mode uint8

// The modes. The numbers are those that policies see.
const (
	Follow Mode = 1 // the target that a client or dynamic allocation set is the ceiling
	Scale  Mode = 2 // the policy sizes the fleet between minimum and maximum
)

// Profile is a kind of executor.
type Profile struct {
	ID              snapshot.Profile
	Name            string
	Slots           uint32
	Target          uint32        // initial target in mode Follow
	Min, Max        uint32        // Max 0: no bound
	MaxPending      uint32        // 0: no bound
	BatchSize       uint32        // most executors to ask for at once
	IdleTimeout     time.Duration // a request younger than this is not cancelled
	CreationTimeout time.Duration // a request that nobody has seen for longer is given up
	ReleaseIdle     time.Duration // an executor idle for longer may be let go; 0: never by itself
	Dynamic         Dynamic
}

// most is the profile's maximum, hostabi.None if it has none.
func (p *Profile) most() uint32 {
	if p.Max == 0 {
		return hostabi.None
	}
	return p.Max
}

// ceiling is how many executors a policy may have that were not told to end.
func (p *Profile) ceiling(m Mode, target uint32) uint32 {
	if m == Scale && p.Max > 0 {
		return p.Max
	}
	return min(max(target, p.Min), p.most())
}
