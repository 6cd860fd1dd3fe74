package application

import (
	"fmt"

	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// Reasons of conditions.
const (
	reasonReady       = "ExecutorsRegistered"
	reasonMissing     = "ExecutorsMissing"
	reasonStopped     = "Stopped"
	reasonSettled     = "Settled"
	reasonStarting    = "ExecutorsStarting"
	reasonUnreported  = "ExecutorsUnregistered"
	reasonAsking      = "ExecutorsWanted"
	reasonHeld        = "HeldBack"
	reasonQueued      = "TasksWaiting"
	reasonForeign     = "LeftAlone"
	reasonEnding      = "ExecutorsEnding"
	reasonWorking     = "TasksRunning"
	reasonUnlimited   = "NothingInTheWay"
	reasonUnlisted    = "WaitingForCluster"
	reasonBackoff     = "BackingOff"
	reasonUnscheduled = "Unschedulable"
	reasonFault       = "PolicyFault"
	reasonMaximum     = "AtMaximum"
	reasonLifetime    = "LifetimeSpent"
	reasonCapacity    = "WaitingForCapacity"
	reasonUnwanted    = "NothingWanted"
)

// judge brings the conditions up to date. Since is when a condition was first found to be as it is.
func (a *Application) judge(now snapshot.Instant) {
	judged := []Condition{a.ready(), a.progressing(), a.limited()}
	if len(a.foreign) > 0 {
		judged = append(judged, Condition{Type: ForeignPods, True: true, Reason: reasonForeign, Text: a.foreign.String()})
	}
	for i := range judged {
		judged[i].Since = now
		if i < len(a.conditions) && a.conditions[i].True == judged[i].True && a.conditions[i].Reason == judged[i].Reason {
			judged[i].Since = a.conditions[i].Since
		}
	}
	a.conditions = judged
}

// wanted is how many executors a profile should have at least.
func (a *Application) wanted(p *Profile) uint32 {
	if a.alloc.Mode() == Scale {
		return p.Min
	}
	n := max(a.store.Target(p.ID), p.Min)
	if p.Max > 0 {
		n = min(n, p.Max)
	}
	return n
}

func (a *Application) ready() Condition {
	if a.stopped {
		return Condition{Type: Ready, Reason: reasonStopped, Text: "the application has stopped"}
	}
	if text := a.missing(); text != "" {
		return Condition{Type: Ready, Reason: reasonMissing, Text: text}
	}
	return Condition{Type: Ready, True: true, Reason: reasonReady, Text: "as many executors are registered as wanted"}
}

// missing says of which profile fewer executors are registered than wanted, empty if of none. A stopped application wants none.
func (a *Application) missing() string {
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		if got, want := a.store.Counts(p.ID).Registered, a.wanted(p); got < want && !a.stopped {
			return fmt.Sprintf("profile %s: registered executors: %d of %d", p.Name, got, want)
		}
	}
	return ""
}

// progressing says what is under way: what executors do, then what tasks do, and only if nothing is wanted that is not there that all is settled.
func (a *Application) progressing() Condition {
	total, tasks := a.store.Total(), a.book.Counts()
	moving := func(reason, format string, args ...any) Condition {
		return Condition{Type: Progressing, True: true, Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	leaving, silent := total.ByPhase[snapshot.Terminating]+total.Draining, a.unregistered()
	switch missing := a.missing(); {
	case total.Starting() > 0:
		return moving(reasonStarting, "executors starting: %d", total.Starting())
	case leaving > 0:
		return moving(reasonEnding, "executors ending: %d", leaving)
	case silent > 0:
		return moving(reasonUnreported, "executors that run and have not registered yet: %d", silent)
	case tasks.Launched+tasks.Running > 0:
		return moving(reasonWorking, "tasks on executors: %d, waiting: %d", tasks.Launched+tasks.Running, tasks.Queued)
	case missing != "" && a.limited().True:
		return Condition{Type: Progressing, Reason: reasonHeld, Text: missing + "; Limited says why"}
	case missing != "":
		return moving(reasonAsking, "%s: more are asked for", missing)
	case tasks.Queued > 0:
		return Condition{Type: Progressing, Reason: reasonQueued, Text: fmt.Sprintf("tasks waiting, without an executor that has room: %d", tasks.Queued)}
	}
	return Condition{Type: Progressing, Reason: reasonSettled, Text: "nothing is under way"}
}

// unregistered is how many executors run, are not on their way out, and have no session.
func (a *Application) unregistered() uint32 {
	total := a.store.Total()
	if total.Registered >= total.ByPhase[snapshot.Running] && total.Draining == 0 {
		return 0 // the usual case costs nothing
	}
	n := uint32(0)
	a.store.Each(func(e *snapshot.Executor) {
		if e.Phase == snapshot.Running && !e.Load.Registered && !e.Load.Draining {
			n++
		}
	})
	return n
}

// limited says what keeps the fleet from what is wanted, the most pressing first.
func (a *Application) limited() Condition {
	if a.stopped {
		return Condition{Type: Limited, Reason: reasonStopped, Text: "the application has stopped"}
	}
	for _, look := range []func() (reason, text string){a.unlisted, a.refused, a.backingOff, a.unscheduled, a.faulty, a.bounded, a.waiting, a.unwanted} {
		if reason, text := look(); reason != "" {
			return Condition{Type: Limited, True: true, Reason: reason, Text: text}
		}
	}
	return Condition{Type: Limited, Reason: reasonUnlimited, Text: "nothing keeps the fleet from what is wanted"}
}

func (a *Application) unlisted() (reason, text string) {
	if a.listed {
		return "", ""
	}
	return reasonUnlisted, "the cluster has not been listed yet"
}

// refused says why creations are refused. It holds until one is accepted.
func (a *Application) refused() (reason, text string) {
	for i, k := range a.kinds {
		if k.refusal != 0 {
			reason, text = refusalReason(k.refusal)
			return reason, "profile " + a.cfg.Profiles[i].Name + ": " + text
		}
	}
	return "", ""
}

func refusalReason(class RefusalClass) (reason, text string) {
	switch class {
	case RefusedInvalid:
		return "TemplateInvalid", "its pods are not valid; correct the pod template"
	case RefusedQuota:
		return "QuotaExceeded", "a quota is used up"
	case RefusedAdmission:
		return "AdmissionDenied", "an admission rule turns its pods down"
	case RefusedForbidden:
		return "Forbidden", "the daemon may not create pods here"
	case RefusedTaken:
		return "NameTaken", "pods that are not this daemon's have the names of its executors; others are asked for under other names"
	case RefusedOther:
	}
	return "CreateRefused", "the API refuses its pods"
}

func (a *Application) backingOff() (reason, text string) {
	for i, k := range a.kinds {
		if _, backing := k.backoff.Until(); backing {
			return reasonBackoff, fmt.Sprintf("profile %s: %s", a.cfg.Profiles[i].Name, k.backoff.Describe(a.now))
		}
	}
	return "", ""
}

func (a *Application) unscheduled() (reason, text string) {
	if a.store.Total().ByPhase[snapshot.Pending] == 0 {
		return "", ""
	}
	n, example := 0, ""
	for e := range a.store.All() {
		if e.Phase == snapshot.Pending && e.Wait == snapshot.WaitUnschedulable {
			n++
			example = e.WaitText
		}
	}
	if n == 0 {
		return "", ""
	}
	return reasonUnscheduled, fmt.Sprintf("executors that find no node: %d: %s", n, example)
}

func (a *Application) faulty() (reason, text string) {
	if !a.policy.faulty {
		return "", ""
	}
	return reasonFault, "the built-in policy decides: " + a.policy.lastFault
}

// bounded says which bound of the configuration keeps the fleet from growing although tasks wait or executors are wanted.
func (a *Application) bounded() (reason, text string) {
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		live, queued := a.store.Counts(p.ID).Live(), a.book.Demand(p.ID).Queued
		if p.Max > 0 && live >= p.Max && queued > 0 {
			return reasonMaximum, fmt.Sprintf("profile %s: it has all executors that it may have (%d); tasks waiting: %d", p.Name, p.Max, queued)
		}
		if most := a.cfg.MaxLifetime; most > 0 && live < a.wanted(p) && a.alloc.Created() >= most {
			return reasonLifetime, fmt.Sprintf("as many executors were created as the application may ever have (%d)", most)
		}
	}
	return "", ""
}

// unwanted says that tasks wait for executors that nobody wants.
func (a *Application) unwanted() (reason, text string) {
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		if queued := a.book.Demand(p.ID).Queued; queued > 0 && a.cfg.Mode == Follow && !p.Dynamic.Enabled && a.wanted(p) == 0 && a.store.Counts(p.ID).Live() == 0 {
			return reasonUnwanted, fmt.Sprintf("profile %s: its target is 0, nothing raises it, and tasks wait (%d): "+
				"scale it, enable dynamicAllocation, or use mode scale", p.Name, queued)
		}
	}
	return "", ""
}

// waiting says that tasks wait although nothing else is wrong.
func (a *Application) waiting() (reason, text string) {
	for i := range a.cfg.Profiles {
		p := &a.cfg.Profiles[i]
		if queued, got := a.book.Demand(p.ID).Queued, a.store.Counts(p.ID); queued > 0 && got.Registered < a.wanted(p) {
			return reasonCapacity, fmt.Sprintf("profile %s: tasks waiting for executors that have not registered yet: %d", p.Name, queued)
		}
	}
	return "", ""
}
