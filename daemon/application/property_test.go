package application_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/hostabi"
)

// Whatever happens, and whatever a policy answers, the promises hold: never more than the maximum are live, no number is used twice, questions
// are numbered upwards, no task changes after its end or is begun after its deadline, and a stopped application creates nothing and ends once.
func TestNothingBreaksThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 120).Draw(t, "events") {
			u.do()
		}
		if rapid.Bool().Draw(t, "stop") {
			u.step(application.Stop{Request: 9, KeepExecutors: rapid.Bool().Draw(t, "keep")})
			for range 20 {
				u.do()
			}
		}
	})
}

// The same events give the same effects.
func TestStepIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 80).Draw(t, "events") {
			u.do()
		}
		again := application.New(u.cfg)
		for i, h := range u.referee.history {
			effects := again.Step(h.now, h.event)
			if diff := cmp.Diff(plain(u.referee.answers[i]), plain(effects)); diff != "" {
				t.Fatalf("event %d (%T) was answered differently the second time (-first +second):\n%s", i+1, h.event, diff)
			}
		}
	})
}

// plain makes effects comparable by what is in them: a snapshot is what it lists.
func plain(effects []application.Effect) []string {
	lines := make([]string, len(effects))
	for i, effect := range effects {
		ask, ok := effect.(application.AskPolicy)
		if !ok {
			lines[i] = fmt.Sprintf("%T %+v", effect, effect)
			continue
		}
		var v hostabi.View
		ask.Input.View(&v, hostabi.Projection{})
		lines[i] = fmt.Sprintf("ask %d %t %x", ask.Number, ask.Builtin, v.Encode(nil, hostabi.Projection{}))
	}
	return lines
}

// When faults stop and targets rest, the fleet comes to its targets, every task ends, and then nothing is created, deleted or sent any more.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnruly(t)
		u.list()
		for range rapid.IntRange(10, 100).Draw(t, "events") {
			u.do()
		}
		u.calm()
		for range 40 { // deletions that were refused are tried again after half an hour at the latest
			u.politely()
			u.advance(time.Minute)
		}
		u.take()
		for _, p := range u.cfg.Profiles {
			c, want := u.app.Snapshot().Counts(p.ID), u.wanted(p)
			if c.Registered < want || c.Staying() < want {
				t.Errorf("profile %s: %d registered, %d stay, want %d", p.Name, c.Registered, c.Staying(), want)
			}
		}
		counts := u.app.Status(u.now).Tasks
		if counts.Queued+counts.Launched+counts.Running > 0 {
			t.Errorf("not all tasks have ended: %+v", counts)
		}
		if ended := counts.Succeeded + counts.Failed + counts.Cancelled + counts.Expired; ended != counts.Accepted || ended != uint64(len(u.referee.ended)) {
			t.Errorf("%d accepted, %d ended, %d seen to end by the watch", counts.Accepted, ended, len(u.referee.ended))
		}
		u.politely()
		for range 20 {
			u.advance(time.Minute)
			u.beats()
		}
		for _, effect := range u.take() {
			switch effect.(type) {
			case application.SetTimer, application.AskPolicy:
			default:
				t.Errorf("the fleet has settled and yet: %T %+v", effect, effect)
			}
		}
	})
}
