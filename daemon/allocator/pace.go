package allocator

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// pace says when the next pass is due. What changes while a pass is going on makes another one due after it.
type pace struct {
	batch, resync time.Duration
	begun         bool
	last          snapshot.Instant // when the last pass began
	due           snapshot.Instant // when the next one begins; 0: unknown
	ripe          bool             // it begins now: its timer fired, or an urgent change need not wait
	dirty         bool             // something changed during the pass
	held          bool             // a pass is going on, and no question is in flight
	why           hostabi.Trigger  // the most telling of the changes since the last pass; 0: none
}

// telling ranks triggers: what a policy is told is the most telling of all that came together.
func telling(t hostabi.Trigger) int {
	switch t {
	case hostabi.TriggerStart:
		return 4
	case hostabi.TriggerTargets:
		return 3
	case hostabi.TriggerDemand:
		return 2
	case hostabi.TriggerPods:
		return 1
	case hostabi.TriggerTimer:
	}
	return 0
}

func (p *pace) note(now snapshot.Instant, why hostabi.Trigger, urgent, flying bool) {
	if telling(why) > telling(p.why) {
		p.why = why
	}
	if flying || p.held {
		p.dirty = true
		return
	}
	at := now.Add(p.batch)
	if urgent {
		at = now
		if p.begun {
			at = max(now, p.last.Add(p.batch))
		}
		p.ripe = p.ripe || at == now
	}
	p.due = earlier(p.due, at)
}

func (p *pace) force(now snapshot.Instant, flying bool) {
	if flying || p.held {
		p.dirty = true
		return
	}
	p.due, p.ripe = now, true
}

// begin takes note of a pass that begins, and says why it does.
func (p *pace) begin(now snapshot.Instant) hostabi.Trigger {
	why := p.why
	if why == 0 {
		why = hostabi.TriggerTimer
	}
	p.begun, p.last, p.due, p.ripe, p.dirty, p.held, p.why = true, now, 0, false, false, false, 0
	return why
}

func (p *pace) hold()   { p.held = true }
func (p *pace) resume() { p.held = false }

// end makes the next pass due: soon if something has changed, else when the policy wishes, at the latest after resync.
func (p *pace) end(now, wish snapshot.Instant) {
	p.held = false
	soonest := now.Add(p.batch)
	p.due = max(soonest, earlier(wish, now.Add(p.resync)))
	if p.dirty {
		p.due = soonest
	}
	p.dirty = false
}
