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

// Whatever executors and their streams do: at most one session of each is current, it is the newest, and each loss is told once, when it is due,
// unless so many go at once that the verdict waits.
func TestSessionProtocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := roster.New(limits)
		now, session := t0, uint64(0)
		model := make(map[snapshot.ID]*member)
		held := snapshot.Instant(-1)
		id := rapid.Custom(func(t *rapid.T) snapshot.ID { return snapshot.ID(rapid.IntRange(1, 14).Draw(t, "executor")) })
		old := func(t *rapid.T) uint64 { return rapid.Uint64Range(0, session).Draw(t, "session") }
		current := func(id snapshot.ID, session uint64) bool {
			m := model[id]
			return m != nil && m.session == session && !m.away
		}
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(t *rapid.T) {
				session++
				id := id.Draw(t, "id")
				a := r.Attach(now, hello(id, session), running(id), 4)
				want := roster.Admission{Verdict: roster.Admitted, Slots: 4}
				m := model[id]
				if m == nil {
					m = &member{}
					model[id] = m
				} else {
					want.Returned = true
					if !m.away {
						want.Superseded = m.session
					}
				}
				m.session, m.away, m.since = session, false, now
				if m.drain == roster.DrainStopping {
					m.drain = roster.DrainTold
				}
				want.Drain = m.drain
				if a != want {
					t.Fatalf("attach (-want +got):\n%s", cmp.Diff(want, a))
				}
			},
			"attach too late": func(t *rapid.T) {
				if id, s := id.Draw(t, "id"), old(t); model[id] != nil && s <= model[id].session {
					if a := r.Attach(now, hello(id, s), running(id), 4); a.Verdict != roster.Outdated {
						t.Fatalf("session %d after %d: %+v", s, model[id].session, a)
					}
				}
			},
			"detach": func(t *rapid.T) {
				id, s := id.Draw(t, "id"), old(t)
				if m := model[id]; m != nil && rapid.Bool().Draw(t, "its own") {
					s = m.session
				}
				was := current(id, s)
				if got := r.Detach(now, id, s); got != was {
					t.Fatalf("detached: %v, want %v", got, was)
				}
				if was {
					model[id].away, model[id].since = true, now
				}
			},
			"beat": func(t *rapid.T) {
				for id, m := range model {
					if uint64(id)%3 != uint64(now)%3 {
						continue
					}
					if got := r.Beat(now, id, m.session); got != !m.away {
						t.Fatalf("beat of %d: %v", id, got)
					}
					if !m.away {
						m.since = now
					}
				}
			},
			"drain": func(t *rapid.T) {
				id, whenIdle := id.Draw(t, "id"), rapid.Bool().Draw(t, "when idle")
				m := model[id]
				told := m != nil && !m.away && !whenIdle && m.drain < roster.DrainTold
				if got := r.Drain(id, whenIdle); got != told {
					t.Fatalf("told: %v, want %v", got, told)
				}
				if m != nil && whenIdle {
					m.drain = max(m.drain, roster.DrainWhenIdle)
				} else if m != nil {
					m.drain = max(m.drain, roster.DrainTold)
				}
			},
			"idle": func(t *rapid.T) {
				id := id.Draw(t, "id")
				m := model[id]
				stop := m != nil && !m.away && (m.drain == roster.DrainWhenIdle || m.drain == roster.DrainTold)
				if got := r.Idle(id); got != stop {
					t.Fatalf("stop: %v, want %v", got, stop)
				}
				if stop {
					m.drain = roster.DrainStopping
				}
			},
			"remove": func(t *rapid.T) {
				id := id.Draw(t, "id")
				if _, ok := r.Remove(id); ok != (model[id] != nil) {
					t.Fatalf("removed: %v", ok)
				}
				delete(model, id)
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(timeout)).Draw(t, "later")))
				var due []snapshot.ID
				suspects := 0
				for _, id := range slices.Sorted(maps.Keys(model)) {
					if m := model[id]; m.overdue(now) {
						due = append(due, id)
					}
					if m := model[id]; m.away || now.Sub(m.since) > timeout/2 {
						suspects++
					}
				}
				at, some := r.Next()
				if len(due) > 0 && held < 0 && (!some || at > now) {
					t.Fatalf("%v are due, and next is %v, %v", due, at, some)
				}
				switch {
				case held >= 0 && now <= held:
					due = nil
				case held < 0 && len(due) > 0 && len(model) >= 10 && suspects*10 > len(model)*3:
					held, due = now.Add(timeout), nil
				default:
					held = -1
				}
				if got := executors(r.Expire(now)); !slices.Equal(due, got) {
					t.Fatalf("lost %v, want %v", got, due)
				}
				for _, id := range due {
					delete(model, id)
				}
			},
			"": func(t *rapid.T) {
				if ids := slices.Sorted(maps.Keys(model)); r.Len() != len(ids) {
					t.Fatalf("%d registered, want %v", r.Len(), ids)
				}
				last := snapshot.ID(0)
				for s := range r.All() {
					m := model[s.Executor]
					if s.Executor <= last || m == nil || s.Session != m.session || s.Away != m.away || s.Drain != m.drain {
						t.Fatalf("after %d: %+v, want %+v", last, s, m)
					}
					last = s.Executor
					if r.Usable(s.Executor) != (!m.away && m.drain == roster.DrainNone) {
						t.Fatalf("executor %d is usable: %v", s.Executor, r.Usable(s.Executor))
					}
				}
				for s := range session + 1 {
					for id := range model {
						if r.Current(id, s) != current(id, s) {
							t.Fatalf("session %d of %d is current: %v", s, id, r.Current(id, s))
						}
					}
				}
			},
		})
	})
}
