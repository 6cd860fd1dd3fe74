package actuator

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// desk knows which effects are not answered yet and decides what is tried when. It makes no call and reads no clock.
type desk struct {
	limits  Limits
	jitter  func(time.Duration) time.Duration
	tenants map[string]*tenant
	lanes   [verbs]lane
	answers []answer
}

// tenant is an application.
type tenant struct {
	app, namespace string
	gone           bool
	orders         [verbs]map[slot]*order
	shares         [verbs]share
}

// slot is whom an effect is about. Pods of other lives may have an executor's number: their names tell them apart.
type slot struct {
	id   snapshot.ID
	name string
}

// order is an effect that is not answered yet.
type order struct {
	verb   verb
	tenant *tenant
	slot
	flying bool
	unsure bool // an earlier try may have been carried out
	tries  int

	createPod application.CreatePod
	pod       *corev1.Pod
	parked    *application.DeletePod // creation: asked for meanwhile; it waits for the answer

	deletePod application.DeletePod
	again     *application.DeletePod // deletion: asked for while in flight
}

type answer struct {
	app   string
	event application.Event
}

// news is what a result changed that people want to know.
type news uint8

const (
	nothingNew   news = 0
	troubleBegan news = 1
	troubleEnded news = 2
	foreignFound news = 3
)

func newDesk(limits Limits, jitter func(time.Duration) time.Duration) *desk {
	d := &desk{limits: limits, jitter: jitter, tenants: map[string]*tenant{}}
	for v := range d.lanes {
		d.lanes[v].window = window{limit: limits.Calls, most: limits.MaxCalls}
	}
	return d
}

func (d *desk) admit(app, namespace string) {
	if t, ok := d.tenants[app]; ok {
		t.namespace = namespace
		return
	}
	t := &tenant{app: app, namespace: namespace}
	for v := range t.orders {
		t.orders[v] = map[slot]*order{}
	}
	d.tenants[app] = t
}

func (d *desk) dismiss(app string) {
	t, ok := d.tenants[app]
	if !ok {
		return
	}
	t.gone = true
	for v := range t.shares {
		d.lanes[v].clear(&t.shares[v])
	}
	delete(d.tenants, app)
	d.answers = slices.DeleteFunc(d.answers, func(a answer) bool { return a.app == app })
}

func (d *desk) create(app string, eff application.CreatePod) {
	t, ok := d.tenants[app]
	if !ok || t.orders[creation][slot{eff.Executor, eff.Name}] != nil {
		return
	}
	d.enter(&order{verb: creation, tenant: t, slot: slot{eff.Executor, eff.Name}, createPod: eff})
}

func (d *desk) delete(app string, eff application.DeletePod) {
	t, ok := d.tenants[app]
	if !ok {
		return
	}
	who := slot{eff.Executor, eff.Name}
	if c := t.orders[creation][who]; c != nil {
		c.parked = &eff
		if !c.flying && !c.unsure {
			d.lanes[creation].drop(&t.shares[creation], c)
			d.cancelled(c)
		}
		return
	}
	switch o := t.orders[deletion][who]; {
	case o == nil:
		d.enter(&order{verb: deletion, tenant: t, slot: who, deletePod: eff})
	case o.flying:
		o.again = &eff
	default:
		o.deletePod = eff
	}
}

func (d *desk) enter(o *order) {
	o.tenant.orders[o.verb][o.slot] = o
	d.lanes[o.verb].push(&o.tenant.shares[o.verb], o)
}

// start takes all orders that may be tried now.
func (d *desk) start(now time.Time) []*order {
	var out []*order
	for _, v := range [...]verb{deletion, creation} {
		for o := d.lanes[v].next(now); o != nil; o = d.lanes[v].next(now) {
			o.flying = true
			out = append(out, o)
		}
	}
	return out
}

// pause is how long nothing can be started, unless something happens.
func (d *desk) pause(now time.Time) (time.Duration, bool) {
	var first time.Time
	for v := range d.lanes {
		if at, ok := d.lanes[v].wake(now); ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return max(0, first.Sub(now)), !first.IsZero()
}

// take returns the answers since it was last called.
func (d *desk) take() []answer {
	out := d.answers
	d.answers = nil
	return out
}

// finish takes what became of a try that began at a moment.
func (d *desk) finish(now time.Time, o *order, r result, began time.Time) news {
	lane, share := &d.lanes[o.verb], &o.tenant.shares[o.verb]
	o.flying = false
	lane.flying--
	share.flying--
	o.tries++
	n := d.pace(now, lane, share, r, began)
	if o.tenant.gone {
		return n
	}
	if o.verb == creation {
		d.created(o, r)
	} else {
		d.deleted(o, r)
	}
	if r.foreign {
		n = foreignFound
	}
	return n
}

// pace adapts what may be tried next to how a try went.
func (d *desk) pace(now time.Time, l *lane, s *share, r result, began time.Time) news {
	again := r.class.Transient() || r.class == cluster.Conflict && !r.changed
	if !again {
		l.window.succeed()
		trouble := s.streak > 0
		s.streak, s.paused = 0, time.Time{}
		if trouble {
			return troubleEnded
		}
		return nothingNew
	}
	if r.class == cluster.Throttled || r.class == cluster.Unknown {
		l.window.shrink(now, began)
	}
	if began.Before(s.since) { // a neighbour in flight has already begun this pause
		return nothingNew
	}
	pause := d.jitter(backoff(d.limits, s.streak))
	s.streak++
	s.since, s.paused = now, now.Add(pause)
	if r.class == cluster.Throttled { // the cluster speaks of all our calls of this kind, not only of this application's
		if at := now.Add(cluster.RetryAfter(r.err)); at.After(l.paused) {
			l.paused = at
		}
	}
	if s.streak == 1 {
		return troubleBegan
	}
	return nothingNew
}

func backoff(l Limits, streak int) time.Duration {
	d := float64(l.Backoff) * math.Pow(2, float64(streak))
	return time.Duration(min(d, float64(l.MaxBackoff)))
}

func (d *desk) created(o *order, r result) {
	switch {
	case r.class == cluster.None:
		d.settle(o, application.PodCreated{Executor: o.id, UID: string(r.pod.UID), Version: version(r.pod)})
		if o.parked != nil {
			eff := *o.parked
			eff.UID, eff.Version = string(r.pod.UID), 0 // what the decision saw was a pod that nobody had seen: its identity is all that can be held against it
			d.enter(&order{verb: deletion, tenant: o.tenant, slot: o.slot, deletePod: eff})
		}
	case r.class.Transient(), r.class == cluster.Conflict:
		o.unsure = o.unsure || r.class == cluster.Unknown
		if o.parked != nil && !o.unsure {
			d.cancelled(o)
			return
		}
		d.lanes[creation].push(&o.tenant.shares[creation], o) // at the end: a pod that cannot be made must not keep others waiting
	default:
		d.settle(o, application.PodRefused{Executor: o.id, Class: refusalOf(r.class), Text: r.text})
		if o.parked != nil {
			d.answer(o, application.PodDeleted{Executor: o.id, Name: o.name, Outcome: application.DeleteAccepted, Text: "the pod was never made"})
		}
	}
}

// cancelled answers for a creation that certainly was not carried out and is not wanted any more.
func (d *desk) cancelled(o *order) {
	d.settle(o, application.PodRefused{Executor: o.id, Class: application.RefusedOther, Text: "cancelled before it was asked for"})
	d.answer(o, application.PodDeleted{Executor: o.id, Name: o.name, Outcome: application.DeleteAccepted, Text: "the pod was never asked for"})
}

func (d *desk) deleted(o *order, r result) {
	outcome := application.DeleteAccepted
	switch {
	case r.changed:
		outcome = application.DeleteChanged
	case r.class == cluster.None:
	case r.class.Transient() && o.again != nil: // the newer wish replaces the one that did not come through
		o.deletePod, o.again, o.tries = *o.again, nil, 0
		fallthrough
	case r.class.Transient() && o.tries < d.limits.DeleteTries:
		o.unsure = o.unsure || r.class == cluster.Unknown
		d.lanes[deletion].push(&o.tenant.shares[deletion], o)
		return
	default:
		outcome = application.DeleteFailed
	}
	d.settle(o, application.PodDeleted{Executor: o.id, Name: o.name, Outcome: outcome, Text: r.text})
	if o.again != nil {
		d.enter(&order{verb: deletion, tenant: o.tenant, slot: o.slot, deletePod: *o.again})
	}
}

// settle answers an order and forgets it.
func (d *desk) settle(o *order, ev application.Event) {
	delete(o.tenant.orders[o.verb], o.slot)
	d.answer(o, ev)
}

func (d *desk) answer(o *order, ev application.Event) {
	d.answers = append(d.answers, answer{app: o.tenant.app, event: ev})
}
