package roster_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/roster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// member is what the obvious model of a roster holds of an executor.
type member struct {
	session uint64
	away    bool
	since   snapshot.Instant
	drain   roster.Drain
}

func (m member) overdue(now snapshot.Instant) bool {
	if m.away {
		return now.Sub(m.since) > grace
	}
	return now.Sub(m.since) > timeout
}

// protocol is a roster beside its model. Its exported methods are what may happen.
type protocol struct {
	roster  *roster.Roster
	members map[snapshot.ID]*member
	now     snapshot.Instant
	session uint64           // the newest
	held    snapshot.Instant // no verdict up to here; negative: none is put off
}

// Whatever executors and their streams do: at most one session of each is current, it is the newest, and each loss is told once, when it is due,
// unless so many go at once that the verdict waits.
func TestSessionProtocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &protocol{roster: roster.New(limits), members: make(map[snapshot.ID]*member), now: t0, held: -1}
		t.Repeat(rapid.StateMachineActions(p))
	})
}

func anyID(t *rapid.T) snapshot.ID { return snapshot.ID(rapid.IntRange(1, 14).Draw(t, "executor")) }

func (p *protocol) current(id snapshot.ID, session uint64) bool {
	m := p.members[id]
	return m != nil && m.session == session && !m.away
}

func (p *protocol) Attach(t *rapid.T) {
	p.session++
	id := anyID(t)
	got := p.roster.Attach(p.now, hello(id, p.session), running(id), 4)
	want := roster.Admission{Verdict: roster.Admitted, Slots: 4}
	m := p.members[id]
	if m == nil {
		m = &member{}
		p.members[id] = m
	} else {
		want.Returned = true
		if !m.away {
			want.Superseded = m.session
		}
	}
	m.session, m.away, m.since = p.session, false, p.now
	if m.drain == roster.DrainStopping {
		m.drain = roster.DrainTold
	}
	want.Drain = m.drain
	if got != want {
		t.Fatalf("attach (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func (p *protocol) AttachTooLate(t *rapid.T) {
	id, session := anyID(t), rapid.Uint64Range(0, p.session).Draw(t, "session")
	m := p.members[id]
	if m == nil || session > m.session {
		return
	}
	if a := p.roster.Attach(p.now, hello(id, session), running(id), 4); a.Verdict != roster.Outdated {
		t.Fatalf("session %d after %d: %+v", session, m.session, a)
	}
}

func (p *protocol) Detach(t *rapid.T) {
	id, session := anyID(t), rapid.Uint64Range(0, p.session).Draw(t, "session")
	m := p.members[id]
	if m != nil && rapid.Bool().Draw(t, "its own") {
		session = m.session
	}
	was := p.current(id, session)
	if got := p.roster.Detach(p.now, id, session); got != was {
		t.Fatalf("detached: %v, want %v", got, was)
	}
	if was {
		m.away, m.since = true, p.now
	}
}

// Beats are those of a third of the executors at a time, so that now and then all but a few are silent.
func (p *protocol) Beats(t *rapid.T) {
	third := rapid.Uint64Range(0, 2).Draw(t, "third")
	for id, m := range p.members {
		if uint64(id)%3 != third {
			continue
		}
		if got := p.roster.Beat(p.now, id, m.session); got == m.away {
			t.Fatalf("beat of %d: %v", id, got)
		}
		if !m.away {
			m.since = p.now
		}
	}
}

func (p *protocol) Drain(t *rapid.T) {
	id, whenIdle := anyID(t), rapid.Bool().Draw(t, "when idle")
	m := p.members[id]
	told := m != nil && !m.away && !whenIdle && m.drain < roster.DrainTold
	if got := p.roster.Drain(id, whenIdle); got != told {
		t.Fatalf("told: %v, want %v", got, told)
	}
	switch {
	case m == nil:
	case whenIdle:
		m.drain = max(m.drain, roster.DrainWhenIdle)
	default:
		m.drain = max(m.drain, roster.DrainTold)
	}
}

func (p *protocol) Idle(t *rapid.T) {
	id := anyID(t)
	m := p.members[id]
	stop := m != nil && !m.away && (m.drain == roster.DrainWhenIdle || m.drain == roster.DrainTold)
	if got := p.roster.Idle(id); got != stop {
		t.Fatalf("stop: %v, want %v", got, stop)
	}
	if stop {
		m.drain = roster.DrainStopping
	}
}

func (p *protocol) Remove(t *rapid.T) {
	id := anyID(t)
	if _, ok := p.roster.Remove(id); ok != (p.members[id] != nil) {
		t.Fatalf("removed: %v", ok)
	}
	delete(p.members, id)
}

// TimePasses, and then the verdict is asked for, whether it is due or not.
func (p *protocol) TimePasses(t *rapid.T) {
	p.now = p.now.Add(time.Duration(rapid.Int64Range(0, int64(timeout)).Draw(t, "later")))
	var due []snapshot.ID
	suspects := 0
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		m := p.members[id]
		if m.overdue(p.now) {
			due = append(due, id)
		}
		if m.away || p.now.Sub(m.since) > timeout/2 {
			suspects++
		}
	}
	if at, ok := p.roster.Next(); len(due) > 0 && p.held < 0 && (!ok || at > p.now) {
		t.Fatalf("%v are due, and next is %v, %v", due, at, ok)
	}
	switch {
	case p.held >= 0 && p.now <= p.held:
		due = nil
	case p.held < 0 && len(due) > 0 && len(p.members) >= 10 && suspects*10 > len(p.members)*3:
		p.held, due = p.now.Add(timeout), nil
	default:
		p.held = -1
	}
	if got := executors(p.roster.Expire(p.now)); !slices.Equal(due, got) {
		t.Fatalf("lost %v, want %v", got, due)
	}
	for _, id := range due {
		delete(p.members, id)
	}
}

// Check compares all that can be read.
func (p *protocol) Check(t *rapid.T) {
	if p.roster.Len() != len(p.members) {
		t.Fatalf("%d registered, want %d", p.roster.Len(), len(p.members))
	}
	last := snapshot.ID(0)
	for s := range p.roster.All() {
		m := p.members[s.Executor]
		if s.Executor <= last || m == nil || s.Session != m.session || s.Away != m.away || s.Drain != m.drain {
			t.Fatalf("after %d: %+v, want %+v", last, s, m)
		}
		last = s.Executor
		if p.roster.Usable(s.Executor) != (!m.away && m.drain == roster.DrainNone) {
			t.Fatalf("executor %d is usable: %v", s.Executor, p.roster.Usable(s.Executor))
		}
		for session := range p.session + 1 {
			if got := p.roster.Current(s.Executor, session); got != p.current(s.Executor, session) {
				t.Fatalf("session %d of %d is current: %v", session, s.Executor, got)
			}
		}
	}
}
