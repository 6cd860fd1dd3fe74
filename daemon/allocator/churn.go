package allocator

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const churnSeconds = 60

// churn counts creations and releases of the last minute, by the second.
type churn struct {
	second int64 // the newest that was counted
	counts [churnSeconds]uint32
}

func (c *churn) add(now snapshot.Instant, n uint32) {
	c.advance(now)
	c.counts[c.second%churnSeconds] += n
}

// used is how many there were in the last minute.
func (c *churn) used(now snapshot.Instant) uint64 {
	c.advance(now)
	sum := uint64(0)
	for _, n := range c.counts {
		sum += uint64(n)
	}
	return sum
}

// advance forgets what is a minute old.
func (c *churn) advance(now snapshot.Instant) {
	second := int64(now) / int64(time.Second)
	for s := max(c.second+1, second-churnSeconds+1); s <= second; s++ {
		c.counts[s%churnSeconds] = 0
	}
	c.second = max(c.second, second)
}
