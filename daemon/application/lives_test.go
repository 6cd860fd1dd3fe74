package application_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// After two restarts pods of two former lives may have the same number. All of them are cleared away, whichever is taken for the executor, and the
// answer to the deletion of one says nothing of the other.
func TestTwoFormerLives(t *testing.T) {
	cfg := plainConfig()
	cfg.Incarnation = 3
	w := newWorld(cfg)
	w.deletes = 0
	former := func(name, uid string) snapshot.Observation {
		return snapshot.Observation{ID: 1, Name: name, UID: uid, Phase: snapshot.Running, Version: w.next()}
	}
	pods := []snapshot.Observation{former("app-i1-exec-1", "u1"), former("app-i2-exec-1", "u2")}
	w.step(application.PodsListed{Version: w.next(), Pods: pods})
	var deleted []string
	for _, effect := range w.take() {
		if d, ok := effect.(application.DeletePod); ok {
			deleted = append(deleted, d.Name+" "+d.UID)
		}
	}
	slices.Sort(deleted)
	if diff := cmp.Diff([]string{"app-i1-exec-1 u1", "app-i2-exec-1 u2"}, deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	w.step(application.PodDeleted{Executor: 1, Name: "app-i2-exec-1", Outcome: application.DeleteFailed, Text: "forbidden"})
	for _, effect := range w.take() {
		if n, ok := effect.(application.Notice); ok {
			t.Errorf("the executor is blamed for another's pod: %+v", n)
		}
	}
}
