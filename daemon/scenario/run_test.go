package scenario_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/retinue-sched/retinue/daemon/scenario"
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
)

// nativeDirect is the default policy, run natively.
var nativeDirect = scenario.Subject{Settings: []string{"gate"}, Configure: func(settings string) (scenario.Policy, error) {
	return sdk.Native(&direct.Policy{}, []byte(settings))
}}

// What Spark's own allocator suite checks holds here as well, and so does what is known to go wrong in Spark.
func TestDirectPassesSparksCases(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "spark_allocator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	list, err := scenario.Load(file, file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 14 {
		t.Errorf("%d scenarios in the file, want 14", len(list))
	}
	for _, s := range list {
		t.Run(s.Name, func(t *testing.T) {
			if err := scenario.Run(t.Context(), s, nativeDirect); err != nil {
				t.Error(err)
			}
		})
	}
}
