package snapshot_test

import (
	"testing"
	"time"

	. "github.com/retinue-sched/retinue/daemon/snapshot"
)

func TestRounded(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0:                               0,
		400 * time.Microsecond:          0,
		20*time.Millisecond + 1:         20 * time.Millisecond,
		999600 * time.Microsecond:       time.Second,
		1500*time.Millisecond + 3:       1500 * time.Millisecond,
		30*time.Second + 1:              30 * time.Second,
		29*time.Second + 999999999:      30 * time.Second,
		90*time.Second + 17*time.Second: 107 * time.Second,
		-5*time.Millisecond - 1:         -5 * time.Millisecond,
	} {
		if got := Rounded(d); got != want {
			t.Errorf("Rounded(%d ns) = %v, want %v", d, got, want)
		}
	}
}
