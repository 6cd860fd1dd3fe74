package application_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// However foreign pods come and go, none is counted, deleted, or has its name asked for, and those that are there are the ones that are named.
func TestForeignPodsAreLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(plainConfig())
		theirs := map[string]bool{}
		w.observe = func(_ application.Event, effects []application.Effect) {
			for _, effect := range effects {
				switch e := effect.(type) {
				case application.CreatePod:
					if theirs[e.Name] {
						t.Errorf("%s was asked for, and is another's", e.Name)
					}
				case application.DeletePod:
					if theirs[e.Name] {
						t.Errorf("%s was deleted, and is another's", e.Name)
					}
				}
			}
		}
		list := func() {
			w.foreign = nil
			for name := range theirs {
				w.foreign = append(w.foreign, application.ForeignPod{Name: name})
			}
			w.list()
		}
		list()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			id := snapshot.ID(rapid.Uint64Range(1, 12).Draw(t, "id"))
			name := fmt.Sprintf("app-i1-exec-%d", id)
			_, ours := w.app.Snapshot().Executor(id)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				if !ours {
					theirs[name] = true
					w.step(application.ForeignObserved{Pod: application.ForeignPod{Name: name}})
				}
			case 1:
				delete(theirs, name)
				w.step(application.ForeignObserved{Pod: application.ForeignPod{Name: name}, Gone: true})
			case 2:
				list()
			case 3:
				w.target(rapid.Uint32Range(0, 10).Draw(t, "target"))
			case 4:
				w.advance(time.Second)
			}
		}
		for range 3 { // no more are asked for before those that were are seen
			list()
			w.advance(2 * time.Minute)
		}
		c := w.app.Status(w.now).Conditions
		if named := len(c) == 4 && c[3].Type == application.ForeignPods && c[3].True; named != (len(theirs) > 0) {
			t.Errorf("%d foreign pods, and the conditions are %+v", len(theirs), c)
		}
		if total := w.app.Snapshot().Total(); total.Staying() != w.app.Snapshot().Target(0) {
			t.Errorf("%d executors stay, want %d", total.Staying(), w.app.Snapshot().Target(0))
		}
	})
}
