package application

import (
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// timersEnd is one more than the highest Timer.
const timersEnd = int(TimerRetry) + 1

func (a *Application) timerFired(t Timer) {
	if int(t) >= timersEnd {
		return
	}
	a.timers[t] = 0 // whoever fired it has forgotten it
	switch t {
	case TimerAsk:
		a.alloc.Force(a.now)
	case TimerDecision:
		if ask, late := a.alloc.Late(a.now, a.scene()); late {
			a.put(ask)
		}
	case TimerCreation:
		a.giveUp()
	case TimerSessions:
		a.loseSessions()
	case TimerDynamic:
		a.backlog = true
	case TimerRetry:
		a.endStragglers()
		a.endBackoffs()
	case TimerTasks: // it brings a step, and each step begins with what is late
	}
}

// endBackoffs has the policy asked about profiles that may be tried again.
func (a *Application) endBackoffs() {
	for _, k := range a.kinds {
		if until, backing := k.backoff.Until(); backing && until <= a.now {
			a.note(hostabi.TriggerTimer, true)
		}
	}
}

// setTimers asks for the timers that are not what they should be.
func (a *Application) setTimers() {
	for t := TimerAsk; int(t) < timersEnd; t++ {
		if at := a.timer(t); at != a.timers[t] {
			a.timers[t] = at
			a.emit(SetTimer{Timer: t, At: at})
		}
	}
}

// timer is when a timer should fire, 0 if never.
func (a *Application) timer(t Timer) snapshot.Instant {
	switch t {
	case TimerAsk:
		if !a.stopped && a.listed {
			return a.alloc.NextAsk()
		}
	case TimerDecision:
		return a.alloc.NextLate()
	case TimerCreation:
		return a.unseen.next(a.isUnseen)
	case TimerSessions:
		if at, ok := a.roster.Next(); ok {
			return at
		}
	case TimerDynamic:
		if !a.stopped {
			return a.alloc.NextRamp()
		}
	case TimerRetry:
		return a.nextRetry()
	case TimerTasks:
		return a.book.NextDeadline()
	}
	return 0
}

// nextRetry is when a deletion is asked for again, a straggler's patience ends, or a back-off lets one more executor be tried.
func (a *Application) nextRetry() snapshot.Instant {
	next := a.stragglers.next(a.isStraggler)
	sooner := func(at snapshot.Instant, ok bool) {
		if ok && (next == 0 || at < next) {
			next = at
		}
	}
	sooner(a.cleaner.Next())
	for _, k := range a.kinds {
		until, backing := k.backoff.Until()
		sooner(until, backing && until > a.now && !a.stopped)
	}
	return next
}
