package snapshot_test

import (
	"fmt"
	"testing"

	. "github.com/retinue-sched/retinue/daemon/snapshot"
)

// One watch event, with a snapshot published every twentieth. The cost must not grow with the fleet. Sparse is a fleet after a long life: few of
// the numbers that were given out are still there.
func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		for name, step := range map[string]int{"dense": 1, "sparse": 97} {
			b.Run(fmt.Sprintf("executors=%d/%s", n, name), func(b *testing.B) {
				s := NewStore()
				for i := range n {
					s.Assume(0, Executor{ID: ID(1 + i*step), Profile: Profile(i % 3)})
				}
				phases := [...]Phase{Pending, Running}
				v := Version(0)
				for i := 0; b.Loop(); i++ {
					v++
					k := i * 7919 % n // far from the last one
					s.Observe(Instant(v), Observation{ID: ID(1 + k*step), Phase: phases[i/n%2], UID: "uid", Version: v})
					if i%20 == 0 {
						s.Snapshot()
					}
				}
			})
		}
	}
}

// Reading all of a snapshot, as a view or a status page does.
func BenchmarkAll(b *testing.B) {
	s := NewStore()
	for i := range 10_000 {
		s.Assume(0, Executor{ID: ID(1 + i)})
	}
	snap := s.Snapshot()
	for b.Loop() {
		busy := uint32(0)
		for e := range snap.All() {
			busy += e.Load.Busy
		}
	}
}
