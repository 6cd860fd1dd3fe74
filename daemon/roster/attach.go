package roster

import (
	"fmt"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Hello is what an executor says when it asks to be admitted. That it is this executor was shown before.
type Hello struct {
	Executor snapshot.ID
	Session  uint64 // counts upwards in the daemon's life
	UID      string // of its pod, as far as it knows; may be empty
	Slots    uint32 // that it offers; 0: as many as the profile says
}

// Verdict is what becomes of a Hello.
type Verdict uint8

// The verdicts.
const (
	Admitted Verdict = 1
	Refused  Verdict = 2 // for good: the executor ends
	Outdated Verdict = 3 // a newer session of the executor was faster: this one is cut off, the executor is well
)

// Admission answers a Hello.
type Admission struct {
	Verdict    Verdict
	Text       string // why it is not admitted, one sentence for people
	Superseded uint64 // session to cut off, whose stream still stands; 0: none
	Returned   bool   // it was registered before and not lost in between: it may still run what it was given
	Slots      uint32 // granted
	Drain      Drain  // DrainTold: it is to be told to finish what it has
}

// Attach answers an executor that asks to be admitted on a new session. Known is the executor in the store, zero if it is unknown there, and
// most is how many slots its profile has.
//
//   - The newest session wins. The older one is superseded.
//   - An executor that nobody has seen yet is admitted: it showed who it is, and the cluster may be slower than its own pods.
//   - An executor whose pod is being deleted by others is admitted only to finish what it has.
//   - One that was lost and comes back is admitted as if it were new; what it was given before is not its own any more.
func (r *Roster) Attach(now snapshot.Instant, h Hello, known snapshot.Executor, most uint32) Admission {
	old := r.entries[h.Executor]
	if old != nil && h.Session <= old.Session.Session {
		return Admission{Verdict: Outdated, Text: fmt.Sprintf("session %d of executor %d is newer", old.Session.Session, h.Executor)}
	}
	if text := refusal(h, known, old); text != "" {
		return Admission{Verdict: Refused, Text: text}
	}
	admission := Admission{Verdict: Admitted, Slots: h.Slots}
	if h.Slots == 0 || h.Slots > most {
		admission.Slots = most
	}
	e := old
	if e == nil {
		e = &entry{Session: Session{Executor: h.Executor}}
		r.entries[h.Executor] = e
	} else {
		admission.Returned = true
		if !e.Away {
			admission.Superseded = e.Session.Session
		}
	}
	e.Session.Session, e.Slots, e.Began, e.Away = h.Session, admission.Slots, now, false
	e.since = now
	if h.UID != "" {
		e.UID = h.UID
	} else if known.UID != "" {
		e.UID = known.UID
	}
	e.Drain = drainOn(e.Drain, known)
	admission.Drain = e.Drain
	r.reckon(e)
	return admission
}

// refusal is why an executor may not come in, empty if it may.
func refusal(h Hello, known snapshot.Executor, old *entry) string {
	switch {
	case known.ID == 0 || known.ID != h.Executor:
		return fmt.Sprintf("executor %d is not one of this application's; it was forgotten or never asked for", h.Executor)
	case !known.Live():
		return fmt.Sprintf("executor %d has ended (%v); its number is not used again", h.Executor, known.Phase)
	case known.Condemned:
		return fmt.Sprintf("executor %d was told to end before it asked to be admitted", h.Executor)
	case h.UID != "" && known.UID != "" && h.UID != known.UID:
		return fmt.Sprintf("executor %d lives in the pod with uid %s, not in %s", h.Executor, known.UID, h.UID)
	case h.UID != "" && old != nil && old.UID != "" && h.UID != old.UID:
		return fmt.Sprintf("executor %d registered from the pod with uid %s, not from %s", h.Executor, old.UID, h.UID)
	case known.Phase == snapshot.Terminating && old == nil:
		return fmt.Sprintf("the pod of executor %d is being deleted", h.Executor)
	}
	return ""
}

// drainOn is how a drain goes on in a new session. What was said in the old one may not have arrived.
func drainOn(d Drain, known snapshot.Executor) Drain {
	switch {
	case d == DrainTold, d == DrainStopping, known.Phase == snapshot.Terminating:
		return DrainTold
	case d == DrainNone && known.Load.Draining:
		return DrainTold
	}
	return d
}

// Vouch compares a session with the uid under which the cluster shows the executor's pod. It reports true if the session belongs to another pod:
// it is out of the roster now and is to be refused.
func (r *Roster) Vouch(id snapshot.ID, uid string) (Session, bool) {
	e := r.entries[id]
	switch {
	case e == nil || uid == "" || e.UID == uid:
		return Session{}, false
	case e.UID == "":
		e.UID = uid
		return Session{}, false
	}
	return r.Remove(id)
}

// Drain asks for an executor to be let go once it has nothing to do; it gets no new task from now on. It reports true if the executor is to be
// told so now, which is never the case if it is drained only when it is idle.
func (r *Roster) Drain(id snapshot.ID, whenIdle bool) bool {
	e := r.entries[id]
	switch {
	case e == nil || e.Drain >= DrainTold:
		return false
	case whenIdle:
		e.Drain = DrainWhenIdle
		return false
	}
	e.Drain = DrainTold
	return !e.Away // one that is away is told when it comes back
}

// Idle says that an executor has nothing to do and nothing that was not acknowledged. It reports true, once in a session, if the executor is
// draining: it is to be told to stop.
func (r *Roster) Idle(id snapshot.ID) bool {
	e := r.entries[id]
	if e == nil || e.Away || e.Drain == DrainNone || e.Drain == DrainStopping {
		return false
	}
	e.Drain = DrainStopping
	return true
}
