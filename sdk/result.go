package sdk

import (
	"unicode/utf8"

	"github.com/retinue-sched/retinue/hostabi"
)

// Result collects what a policy answers. Texts that are longer than the contract allows are cut.
type Result struct {
	decision hostabi.Decision
}

// Create asks for count executors of a profile.
func (r *Result) Create(profile, count uint32, reason string) {
	r.CreateWith(hostabi.Create{Profile: profile, Count: count, Reason: reason})
}

// CreateWith asks for executors with hints where to put them.
func (r *Result) CreateWith(c hostabi.Create) {
	c.Reason, c.Zone = cut(c.Reason, hostabi.MaxTextSize), cut(c.Zone, hostabi.MaxTextSize)
	c.Node, c.CapacityType = cut(c.Node, hostabi.MaxTextSize), cut(c.CapacityType, hostabi.MaxTextSize)
	r.decision.Creates = append(r.decision.Creates, c)
}

// Cancel withdraws an executor that has not started.
func (r *Result) Cancel(executor uint64, reason string) { r.release(executor, hostabi.Cancel, reason) }

// Drain lets an executor finish its work, and ends it then.
func (r *Result) Drain(executor uint64, reason string) { r.release(executor, hostabi.Drain, reason) }

// Kill ends an executor now. The guard refuses it without the grant.
func (r *Result) Kill(executor uint64, reason string) { r.release(executor, hostabi.Kill, reason) }

// CallWithin asks to be called again after ms milliseconds at the latest. The shortest wish of a call counts;
// none is shorter than 1.
func (r *Result) CallWithin(ms int64) {
	ms = max(ms, 1)
	if next := r.decision.NextCallMS; next == 0 || ms < next {
		r.decision.NextCallMS = ms
	}
}

// SetState replaces the state that the next view shows. version is not 0 and says how to read it. A call that
// does not set the state leaves it as it was.
func (r *Result) SetState(version uint32, state []byte) {
	r.decision.StateVersion = version
	r.decision.State = append(r.decision.State[:0], state...)
}

// Note says something for people, in the record of this decision.
func (r *Result) Note(text string) { r.decision.Note = cut(text, hostabi.MaxNoteSize) }

func (r *Result) release(executor uint64, mode hostabi.ReleaseMode, reason string) {
	r.decision.Releases = append(r.decision.Releases,
		hostabi.Release{Executor: executor, Mode: mode, Reason: cut(reason, hostabi.MaxTextSize)})
}

// reset empties the result and keeps its memory.
func (r *Result) reset() {
	d := &r.decision
	*d = hostabi.Decision{Creates: d.Creates[:0], Releases: d.Releases[:0], State: d.State[:0]}
}

// cut returns at most limit bytes of text, and no part of a character.
func cut(text string, limit int) string { //nolint:unparam // in a module, errors are cut at another limit
	if len(text) <= limit {
		return text
	}
	return shortened(text, limit)
}

// shortened is cut for a text that is too long; most are not, and cost no call.
func shortened(text string, limit int) string {
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
