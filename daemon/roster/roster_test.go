package roster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

const (
	timeout = 60 * time.Second
	grace   = 20 * time.Second
	t0      = snapshot.Instant(1000)
)

var limits = roster.Limits{Timeout: timeout, Grace: grace}

func running(id snapshot.ID) snapshot.Executor {
	return snapshot.Executor{ID: id, Phase: snapshot.Running, UID: "u"}
}

func hello(id snapshot.ID, session uint64) roster.Hello {
	return roster.Hello{Executor: id, Session: session, UID: "u", Slots: 4}
}

// with is a roster in which executors 1 to n are registered on sessions 1 to n.
func with(n int) *roster.Roster {
	r := roster.New(limits)
	for i := range n {
		r.Attach(t0, hello(snapshot.ID(i+1), uint64(i+1)), running(snapshot.ID(i+1)), 4)
	}
	return r
}

func executors(lost []roster.Lost) []snapshot.ID {
	var ids []snapshot.ID
	for _, l := range lost {
		ids = append(ids, l.Executor)
	}
	return ids
}

// Who may come in at first.
func TestAdmission(t *testing.T) {
	known := func(change func(*snapshot.Executor)) snapshot.Executor {
		e := running(1)
		change(&e)
		return e
	}
	cases := map[string]struct {
		hello roster.Hello
		known snapshot.Executor
		want  roster.Admission
	}{
		"running":           {hello(1, 7), running(1), roster.Admission{Verdict: roster.Admitted, Slots: 4}},
		"unseen":            {hello(1, 7), snapshot.Executor{ID: 1, Phase: snapshot.Requested}, roster.Admission{Verdict: roster.Admitted, Slots: 4}},
		"uid not said":      {roster.Hello{Executor: 1, Session: 7, Slots: 4}, running(1), roster.Admission{Verdict: roster.Admitted, Slots: 4}},
		"too many slots":    {roster.Hello{Executor: 1, Session: 7, Slots: 9}, running(1), roster.Admission{Verdict: roster.Admitted, Slots: 4}},
		"few slots":         {roster.Hello{Executor: 1, Session: 7, Slots: 1}, running(1), roster.Admission{Verdict: roster.Admitted, Slots: 1}},
		"slots not said":    {roster.Hello{Executor: 1, Session: 7}, running(1), roster.Admission{Verdict: roster.Admitted, Slots: 4}},
		"asked to leave":    {hello(1, 7), known(func(e *snapshot.Executor) { e.Load.Draining = true }), roster.Admission{Verdict: roster.Admitted, Slots: 4, Drain: roster.DrainTold}},
		"unknown":           {hello(1, 7), snapshot.Executor{}, roster.Admission{Verdict: roster.Refused, Text: "executor 1 is not one of this application's; it was forgotten or never asked for"}},
		"another executor":  {hello(1, 7), running(2), roster.Admission{Verdict: roster.Refused, Text: "executor 1 is not one of this application's; it was forgotten or never asked for"}},
		"ended":             {hello(1, 7), known(func(e *snapshot.Executor) { e.Phase = snapshot.Failed }), roster.Admission{Verdict: roster.Refused, Text: "executor 1 has ended (Failed); its number is not used again"}},
		"lost":              {hello(1, 7), known(func(e *snapshot.Executor) { e.Phase = snapshot.Lost }), roster.Admission{Verdict: roster.Refused, Text: "executor 1 has ended (Lost); its number is not used again"}},
		"condemned":         {hello(1, 7), known(func(e *snapshot.Executor) { e.Phase, e.Condemned = snapshot.Terminating, true }), roster.Admission{Verdict: roster.Refused, Text: "executor 1 was told to end before it asked to be admitted"}},
		"deleted by others": {hello(1, 7), known(func(e *snapshot.Executor) { e.Phase = snapshot.Terminating }), roster.Admission{Verdict: roster.Refused, Text: "the pod of executor 1 is being deleted"}},
		"another pod":       {hello(1, 7), known(func(e *snapshot.Executor) { e.UID = "other" }), roster.Admission{Verdict: roster.Refused, Text: "executor 1 lives in the pod with uid other, not in u"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := roster.New(limits)
			got := r.Attach(t0, c.hello, c.known, 4)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if admitted := got.Verdict == roster.Admitted; r.Current(1, 7) != admitted || (r.Len() == 1) != admitted {
				t.Errorf("current: %v, %d registered", r.Current(1, 7), r.Len())
			}
		})
	}
}

// The newest session of an executor is its only one.
func TestNewestSessionWins(t *testing.T) {
	r := with(1)
	if a := r.Attach(t0, hello(1, 5), running(1), 4); a.Verdict != roster.Admitted || a.Superseded != 1 || !a.Returned {
		t.Errorf("a newer session: %+v", a)
	}
	for _, session := range []uint64{3, 5} {
		if a := r.Attach(t0, hello(1, session), running(1), 4); a.Verdict != roster.Outdated || a.Text == "" {
			t.Errorf("session %d after 5: %+v", session, a)
		}
	}
	if r.Current(1, 1) || r.Beat(t0, 1, 1) || r.Detach(t0, 1, 1) || !r.Current(1, 5) {
		t.Error("the older session still counts")
	}
}

// An executor that comes back within the grace goes on; one that does not is lost, once.
func TestBrokenStream(t *testing.T) {
	r := with(2)
	if !r.Detach(t0, 1, 1) || r.Detach(t0, 1, 1) || r.Beat(t0, 1, 1) || r.Usable(1) {
		t.Error("a broken stream still counts")
	}
	if s, ok := r.Registered(1); !ok || !s.Away {
		t.Errorf("it is not registered any more: %+v, %v", s, ok)
	}
	if at, ok := r.Next(); !ok || at != t0.Add(grace)+1 {
		t.Errorf("next %v, %v, want %v", at, ok, t0.Add(grace)+1)
	}
	if lost := r.Expire(t0.Add(grace)); lost != nil {
		t.Errorf("lost within the grace: %v", lost)
	}
	if a := r.Attach(t0.Add(grace), hello(1, 3), running(1), 4); !a.Returned || a.Superseded != 0 {
		t.Errorf("it came back: %+v", a)
	}
	r.Detach(t0.Add(grace), 1, 3)
	later := t0.Add(2*grace) + 1
	lost := r.Expire(later)
	if len(lost) != 1 || lost[0].Executor != 1 || !lost[0].Away || lost[0].Text != "the connection to executor 1 broke 20s ago and it did not come back" {
		t.Errorf("lost: %+v", lost)
	}
	if again := r.Expire(later); again != nil || r.Len() != 1 {
		t.Errorf("lost again: %v", again)
	}
	if a := r.Attach(later, hello(1, 4), running(1), 4); a.Verdict != roster.Admitted || a.Returned {
		t.Errorf("it comes as if new: %+v", a)
	}
}

// Silence longer than the timeout loses a session; a beat begins it anew.
func TestSilence(t *testing.T) {
	r := with(2)
	half := t0.Add(timeout / 2)
	if !r.Beat(half, 1, 1) || r.Beat(half, 1, 2) || r.Beat(half, 3, 1) {
		t.Error("beats of others count")
	}
	r.Beat(t0, 1, 1) // an older sign of life changes nothing
	if lost := r.Expire(t0.Add(timeout)); lost != nil {
		t.Errorf("lost at the timeout: %v", lost)
	}
	lost := r.Expire(t0.Add(timeout) + 1)
	if len(lost) != 1 || lost[0].Session.Session != 2 || lost[0].Text != "nothing was heard of executor 2 for 1m0s" {
		t.Errorf("lost: %+v", lost)
	}
	if at, _ := r.Next(); at != half.Add(timeout)+1 {
		t.Errorf("next %v, want %v", at, half.Add(timeout)+1)
	}
	if lost := r.Expire(half.Add(timeout) + 1); !slices.Equal(executors(lost), []snapshot.ID{1}) {
		t.Errorf("lost: %+v", lost)
	}
	if at, ok := r.Next(); ok {
		t.Errorf("nobody is left, and next is %v", at)
	}
}

// If more than 30 % of at least ten sessions fall silent together the verdict waits for one timeout, and is given then.
func TestManyAtOnce(t *testing.T) {
	cases := map[string]struct {
		sessions, silent int
		held             bool
	}{
		"4 of 10":  {10, 4, true},
		"3 of 10":  {10, 3, false},
		"9 of 9":   {9, 9, false},
		"all":      {20, 20, true},
		"1 of 100": {100, 1, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := with(c.sessions)
			first := t0.Add(timeout) + 1
			beat := func(at snapshot.Instant) {
				for i := c.silent; i < c.sessions; i++ {
					r.Beat(at, snapshot.ID(i+1), uint64(i+1))
				}
			}
			beat(first)
			want := c.silent
			if c.held {
				want = 0
			}
			if lost := r.Expire(first); len(lost) != want {
				t.Fatalf("%d lost at first, want %d", len(lost), want)
			}
			if !c.held {
				return
			}
			second := first.Add(timeout) + 1
			if at, _ := r.Next(); at != second {
				t.Errorf("next %v, want %v", at, second)
			}
			beat(second)
			if lost := r.Expire(second - 1); lost != nil {
				t.Errorf("lost before the second verdict: %v", executors(lost))
			}
			if lost := r.Expire(second); len(lost) != c.silent {
				t.Errorf("%d lost in the end, want %d", len(lost), c.silent)
			}
		})
	}
}

// Sessions do not fall silent at the same instant: those that will be due soon count as well, and so do broken streams.
func TestManyAlmostAtOnce(t *testing.T) {
	r := with(10)
	for i := range 7 {
		r.Beat(t0.Add(time.Duration(i+1)*time.Second), snapshot.ID(i+1), uint64(i+1))
	}
	if lost := r.Expire(t0.Add(timeout) + 1); lost != nil {
		t.Errorf("silent ones were lost: %v", executors(lost))
	}
	r = with(10)
	for i := range 4 {
		r.Detach(t0.Add(time.Duration(i)*time.Second), snapshot.ID(i+1), uint64(i+1))
	}
	if lost := r.Expire(t0.Add(grace) + 1); lost != nil {
		t.Errorf("broken ones were lost: %v", executors(lost))
	}
}

// Who came back while the verdict waited is not lost, and the next time that many go the verdict waits again.
func TestHoldEnds(t *testing.T) {
	r := with(10)
	r.Expire(t0.Add(timeout) + 1)
	back, _ := r.Next()
	for i := range 10 {
		r.Beat(back, snapshot.ID(i+1), uint64(i+1))
	}
	if lost := r.Expire(back); lost != nil {
		t.Errorf("lost after they came back: %v", executors(lost))
	}
	if at, _ := r.Next(); at != back.Add(timeout)+1 {
		t.Errorf("next %v, want %v", at, back.Add(timeout)+1)
	}
	if lost := r.Expire(back.Add(timeout) + 1); lost != nil {
		t.Errorf("the second time was not put off: %v", executors(lost))
	}
}

// A drain goes from the wish over the message to the stop, each told once a session.
func TestDrain(t *testing.T) {
	r := with(1)
	if r.Idle(1) {
		t.Error("stopped without a drain")
	}
	if !r.Drain(1, false) || r.Drain(1, false) || r.Drain(1, true) || r.Usable(1) {
		t.Error("not told once")
	}
	if !r.Idle(1) || r.Idle(1) {
		t.Error("not stopped once")
	}
	if a := r.Attach(t0, hello(1, 2), running(1), 4); a.Drain != roster.DrainTold || !r.Idle(1) {
		t.Errorf("the new session was not told: %+v", a)
	}
	if r.Drain(2, false) || r.Idle(2) {
		t.Error("an unknown executor was drained")
	}
}

// A drain that waits is not told; it is stopped when idle, or told later after all.
func TestDrainWhenIdle(t *testing.T) {
	r := with(2)
	if r.Drain(1, true) || r.Usable(1) || !r.Idle(1) {
		t.Error("executor 1: told, usable, or not stopped")
	}
	r.Drain(2, true)
	if a := r.Attach(t0, hello(2, 9), running(2), 4); a.Drain != roster.DrainWhenIdle {
		t.Errorf("it still waits: %+v", a)
	}
	if !r.Drain(2, false) {
		t.Error("executor 2 was not told")
	}
}

// One that is away is told and stopped when it comes back, not before.
func TestDrainOfOneAway(t *testing.T) {
	r := with(1)
	r.Detach(t0, 1, 1)
	if r.Drain(1, false) || r.Idle(1) {
		t.Error("told while away")
	}
	if a := r.Attach(t0, hello(1, 2), running(1), 4); a.Drain != roster.DrainTold || !r.Idle(1) {
		t.Errorf("not told when back: %+v", a)
	}
}

// A registered executor whose pod others delete may come back to finish; one that we condemned may not.
func TestReturnOfTheDoomed(t *testing.T) {
	r := with(2)
	e := running(1)
	e.Phase = snapshot.Terminating
	if a := r.Attach(t0, hello(1, 5), e, 4); a.Verdict != roster.Admitted || a.Drain != roster.DrainTold {
		t.Errorf("deleted by others: %+v", a)
	}
	e = running(2)
	e.Phase, e.Condemned = snapshot.Terminating, true
	if a := r.Attach(t0, hello(2, 6), e, 4); a.Verdict != roster.Refused {
		t.Errorf("condemned: %+v", a)
	}
}

// A session belongs to the pod that it began with, also if the cluster shows the pod later.
func TestUIDs(t *testing.T) {
	unseen := snapshot.Executor{ID: 1, Phase: snapshot.Requested}
	r := roster.New(limits)
	r.Attach(t0, hello(1, 1), unseen, 4)
	other := hello(1, 2)
	other.UID = "other"
	if a := r.Attach(t0, other, unseen, 4); a.Verdict != roster.Refused || a.Text != "executor 1 registered from the pod with uid u, not from other" {
		t.Errorf("another pod: %+v", a)
	}
	if s, ok := r.Vouch(1, "u"); ok {
		t.Errorf("its own pod is another one: %+v", s)
	}
	if s, ok := r.Vouch(1, "shown"); !ok || s.Session != 1 || r.Len() != 0 {
		t.Errorf("another pod is its own: %+v", s)
	}
	silent := roster.Hello{Executor: 1, Session: 3}
	r.Attach(t0, silent, unseen, 4)
	r.Vouch(1, "u")
	if s, _ := r.Registered(1); s.UID != "u" {
		t.Errorf("uid %q, want u", s.UID)
	}
}

// Who is removed is gone with all that was known of it.
func TestRemove(t *testing.T) {
	r := with(1)
	if s, ok := r.Remove(1); !ok || s.Session != 1 || s.Slots != 4 || s.Began != t0 {
		t.Errorf("removed %+v, %v", s, ok)
	}
	if _, ok := r.Remove(1); ok {
		t.Error("removed twice")
	}
	if at, ok := r.Next(); ok {
		t.Errorf("next %v", at)
	}
	if lost := r.Expire(t0.Add(time.Hour)); lost != nil {
		t.Errorf("lost %v", lost)
	}
}

// New limits hold for the sessions that there are.
func TestConfigure(t *testing.T) {
	r := with(2)
	r.Configure(roster.Limits{Timeout: timeout / 2, Grace: grace})
	if at, _ := r.Next(); at != t0.Add(timeout/2)+1 {
		t.Errorf("next %v", at)
	}
	if lost := r.Expire(t0.Add(timeout/2) + 1); !slices.Equal(executors(lost), []snapshot.ID{1, 2}) {
		t.Errorf("lost %v", executors(lost))
	}
}
