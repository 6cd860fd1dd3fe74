package actuator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// anyFault is what a cluster may do to a call: carry it out and lose the answer, lose the call, refuse, be slow.
var anyFault = rapid.SampledFrom([]fault{
	nil, nil, nil,
	hang,
	commitThenHang,
	slowly(3 * time.Second),
	func(_ context.Context, carryOut func() error) error {
		return errors.Join(carryOut(), errors.New("connection reset by peer"))
	},
	answering(errors.New("connection reset by peer")),
	answering(apierrors.NewTooManyRequests("slow down", 2)),
	answering(apierrors.NewInternalError(errors.New("boom"))),
	answering(quotaError),
})

// step is something that happens: an effect, or time that passes.
type step struct {
	id     snapshot.ID
	create bool
	delete bool
	pass   time.Duration
}

var anyStep = rapid.Custom(func(t *rapid.T) step {
	s := step{id: snapshot.ID(rapid.IntRange(1, 6).Draw(t, "executor"))}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		s.create = true
	case 1:
		s.delete = true
	case 2:
		s.pass = time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond
	}
	return s
})

// Whatever the cluster does to calls, and whatever is asked for meanwhile: every creation is answered once and truly, no pod is made twice, and
// what was deleted after its creation is gone.
func TestEveryEffectIsAnsweredTruly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		faults := map[string][]fault{}
		for _, verb := range []string{"create", "read", "delete"} {
			faults[verb] = rapid.SliceOfN(anyFault, 0, 20).Draw(rt, verb)
		}
		steps := rapid.SliceOfN(anyStep, 1, 25).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = play(t, faults, steps) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// play carries steps out and says what is wrong in the end, if anything is.
func play(t *testing.T, faults map[string][]fault, steps []step) string {
	r := start(t, nil)
	for verb, queue := range faults {
		r.script(verb, queue...)
	}
	created, deleted := map[snapshot.ID]bool{}, map[snapshot.ID]bool{}
	for _, s := range steps {
		switch {
		case s.create && !created[s.id]: // a core never uses a number twice
			created[s.id] = true
			r.act.Enqueue("a", create(s.id))
		case s.delete && created[s.id]:
			deleted[s.id] = true
			r.act.Enqueue("a", application.DeletePod{Executor: s.id, Name: pod.Name("a", 1, s.id), Grace: -1})
		case s.pass > 0:
			pass(s.pass)
		}
	}
	pass(time.Hour)
	r.heard()
	for id := range created {
		if wrong := judge(r, id, deleted[id]); wrong != "" {
			return fmt.Sprintf("executor %d: %s\nanswers: %q\ncalls: %q", id, wrong, r.answers, r.calls)
		}
	}
	return ""
}

func judge(r *rig, id snapshot.ID, deleted bool) string {
	name := pod.Name("a", 1, id)
	var answers, deletions int
	var made, failed bool
	for _, ev := range r.events["a"] {
		switch ev := ev.(type) {
		case application.PodCreated:
			if ev.Executor == id {
				answers, made = answers+1, true
			}
		case application.PodRefused:
			if ev.Executor == id {
				answers++
			}
		case application.PodDeleted:
			if ev.Executor == id {
				deletions, failed = deletions+1, ev.Outcome != application.DeleteAccepted
			}
		}
	}
	there := r.find(name) != nil
	switch {
	case answers != 1:
		return fmt.Sprintf("its creation was answered %d times", answers)
	case r.made[name] > 1:
		return fmt.Sprintf("its pod was made %d times", r.made[name])
	case !made && r.made[name] > 0:
		return "its creation was refused, but the pod was made"
	case deleted != (deletions > 0):
		return fmt.Sprintf("deletion asked for: %v, answered %d times", deleted, deletions)
	case !failed && there != (made && !deleted): // what has failed may have been done all the same
		return fmt.Sprintf("made %v, deleted %v, but there: %v", made, deleted, there)
	}
	return ""
}
