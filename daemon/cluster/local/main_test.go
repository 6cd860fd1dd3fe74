package local_test

import (
	"os"
	"testing"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// The test program is the cluster's program: it is started again as cluster and as guards.
func TestMain(m *testing.M) {
	if code, entered := local.Entered(); entered {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
