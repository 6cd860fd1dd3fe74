package guard_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/daemon/guard"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/hostabi"
)

// anyFleet makes up to 14 executors in all the states that a store can bring them to.
var anyFleet = rapid.Custom(func(t *rapid.T) *snapshot.Store {
	s := snapshot.NewStore()
	for id := range snapshot.ID(rapid.IntRange(0, 14).Draw(t, "executors")) {
		id++
		s.Assume(0, snapshot.Executor{ID: id, Profile: snapshot.Profile(rapid.IntRange(0, 2).Draw(t, "profile"))})
		phases := []snapshot.Phase{snapshot.Requested, snapshot.Pending, snapshot.Running, snapshot.Running, snapshot.Terminating, snapshot.Failed, snapshot.Deleted}
		if p := rapid.SampledFrom(phases).Draw(t, "phase"); p != snapshot.Requested {
			s.Observe(0, snapshot.Observation{ID: id, Phase: p})
		}
		if rapid.IntRange(0, 5).Draw(t, "condemned") == 0 {
			s.Condemn(0, id)
		}
		if rapid.Bool().Draw(t, "registered") {
			s.SetLoad(id, snapshot.Load{
				Registered: true, Slots: 2, Busy: rapid.Uint32Range(0, 2).Draw(t, "busy"), Draining: rapid.IntRange(0, 4).Draw(t, "draining") == 0,
			})
		}
	}
	return s
})

var anyDecision = rapid.Custom(func(t *rapid.T) hostabi.Decision {
	create := rapid.Custom(func(t *rapid.T) hostabi.Create {
		count := rapid.OneOf(rapid.Uint32Range(0, 6), rapid.Just(^uint32(0)))
		return hostabi.Create{Profile: rapid.Uint32Range(0, 3).Draw(t, "profile"), Count: count.Draw(t, "count")}
	})
	release := rapid.Custom(func(t *rapid.T) hostabi.Release {
		return hostabi.Release{Executor: rapid.Uint64Range(0, 16).Draw(t, "executor"), Mode: hostabi.ReleaseMode(rapid.IntRange(0, 4).Draw(t, "mode"))}
	})
	return hostabi.Decision{
		Creates: rapid.SliceOfN(create, 0, 4).Draw(t, "creates"), Releases: rapid.SliceOfN(release, 0, 12).Draw(t, "releases"),
	}
})

// anyLimits bounds profiles 0 and 1. Something always bounds creations, so that the reference comes to an end.
var anyLimits = rapid.Custom(func(t *rapid.T) guard.Limits {
	few := rapid.Uint32Range(0, 10)
	open := rapid.OneOf(few, rapid.Just(none))
	l := guard.Limits{
		MaxPending:   few.Draw(t, "all pending"),
		LifetimeLeft: uint64(rapid.Uint32Range(0, 20).Draw(t, "lifetime")),
		Churn:        open.Draw(t, "churn"),
		Grants:       guard.Grants{DrainBusy: rapid.Bool().Draw(t, "drain busy"), Kill: rapid.Bool().Draw(t, "kill")},
	}
	for p := range snapshot.Profile(2) {
		blocked := ""
		if rapid.IntRange(0, 5).Draw(t, "blocked") == 0 {
			blocked = "stale"
		}
		l.Profiles = append(l.Profiles, guard.ProfileLimits{
			Profile: p, Ceiling: open.Draw(t, "ceiling"), Max: open.Draw(t, "max"), Floor: rapid.Uint32Range(0, 4).Draw(t, "floor"),
			MaxPending: few.Draw(t, "pending"), AtOnce: rapid.Uint32Range(0, 3).Draw(t, "at once"), Blocked: blocked,
		})
	}
	return l
})

// reference carries a decision out one executor at a time and asks before each whether the promises would still hold, counting everything anew.
type reference struct {
	lim       guard.Limits
	executors []snapshot.Executor
	created   []guard.Create
	released  []guard.Release
}

func (r *reference) count(of func(e *snapshot.Executor) bool) (n uint64) {
	for i := range r.executors {
		if of(&r.executors[i]) {
			n++
		}
	}
	return n
}

func (r *reference) creations(of func(guard.Create) bool) (n uint64) {
	for _, c := range r.created {
		if of(c) {
			n += uint64(c.Count)
		}
	}
	return n
}

func (r *reference) limits(p snapshot.Profile) (guard.ProfileLimits, bool) {
	for _, l := range r.lim.Profiles {
		if l.Profile == p {
			return l, true
		}
	}
	return guard.ProfileLimits{}, false
}

func (r *reference) calm() bool {
	done := uint64(len(r.released)) + r.creations(func(guard.Create) bool { return true })
	return r.lim.Churn == none || done < uint64(r.lim.Churn)
}

func (r *reference) mayCreate(p snapshot.Profile) bool {
	l, known := r.limits(p)
	starting := func(e *snapshot.Executor) bool { return e.Phase == snapshot.Requested || e.Phase == snapshot.Pending }
	live := r.count(func(e *snapshot.Executor) bool { return e.Profile == p && e.Live() })
	wanted := r.count(func(e *snapshot.Executor) bool { return e.Profile == p && e.Live() && !e.Condemned })
	pending := r.count(func(e *snapshot.Executor) bool { return e.Profile == p && starting(e) })
	all := r.creations(func(guard.Create) bool { return true })
	own := r.creations(func(c guard.Create) bool { return c.Profile == p })
	return known && l.Blocked == "" && r.calm() && all < r.lim.LifetimeLeft &&
		(l.Ceiling == none || wanted < uint64(l.Ceiling)) && (l.Max == none || live < uint64(l.Max)) &&
		(l.MaxPending == 0 || pending < uint64(l.MaxPending)) && (l.AtOnce == 0 || own < uint64(l.AtOnce)) &&
		(r.lim.MaxPending == 0 || r.count(starting) < uint64(r.lim.MaxPending))
}

func (r *reference) create(c hostabi.Create) {
	row := guard.Create{Profile: snapshot.Profile(c.Profile)}
	r.created = append(r.created, row)
	last := &r.created[len(r.created)-1]
	for range c.Count {
		if !r.mayCreate(row.Profile) {
			break
		}
		last.Count++
		r.executors = append(r.executors, snapshot.Executor{Profile: row.Profile, Phase: snapshot.Requested})
	}
	if last.Count == 0 {
		r.created = r.created[:len(r.created)-1]
	}
}

// release lets one executor go if it may, and reports the way.
func (r *reference) release(d hostabi.Release) {
	i := slices.IndexFunc(r.executors, func(e snapshot.Executor) bool { return uint64(e.ID) == d.Executor })
	if i < 0 || !r.calm() {
		return
	}
	e := &r.executors[i]
	l, known := r.limits(e.Profile)
	going := func(e *snapshot.Executor) bool {
		return !e.Live() || e.Phase == snapshot.Terminating || e.Load.Draining
	}
	staying := r.count(func(o *snapshot.Executor) bool { return o.Profile == e.Profile && !going(o) })
	begun := e.Load.Registered || e.Phase == snapshot.Running
	if !known || !e.Live() || e.Phase == snapshot.Terminating || !going(e) && staying <= uint64(l.Floor) {
		return
	}
	mode := guard.Mode(0)
	switch {
	case slices.ContainsFunc(r.released, func(o guard.Release) bool { return o.Executor == e.ID }):
	case d.Mode == hostabi.Cancel && !begun, d.Mode == hostabi.Drain && !begun && !e.Load.Draining:
		mode = guard.Cancel
	case d.Mode == hostabi.Kill && r.lim.Grants.Kill:
		mode = guard.Kill
	case d.Mode == hostabi.Drain && !e.Load.Draining && e.Load.Busy > 0 && !r.lim.Grants.DrainBusy:
		mode = guard.DrainWhenIdle
	case d.Mode == hostabi.Drain && !e.Load.Draining:
		mode = guard.Drain
	}
	switch mode {
	case 0:
		return
	case guard.Cancel, guard.Kill:
		e.Phase, e.Condemned = snapshot.Terminating, true
	case guard.Drain, guard.DrainWhenIdle:
		e.Load.Draining = true
	}
	r.released = append(r.released, guard.Release{Executor: e.ID, Mode: mode})
}

// Whatever a policy answers, exactly as much of it is planned as keeps the promises in the package comment; and what is not planned is told.
func TestCheckKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, lim, d := anyFleet.Draw(t, "fleet"), anyLimits.Draw(t, "limits"), anyDecision.Draw(t, "decision")
		plan, violations := guard.Check(lim, s, d)
		r := &reference{lim: lim, executors: slices.Collect(s.All())}
		for _, d := range d.Releases {
			r.release(d)
		}
		for _, d := range d.Creates {
			r.create(d)
		}
		slices.SortFunc(r.released, func(a, b guard.Release) int { return int(a.Executor) - int(b.Executor) })
		slices.SortStableFunc(r.created, func(a, b guard.Create) int { return int(a.Profile) - int(b.Profile) })
		if !slices.Equal(r.released, plan.Releases()) {
			t.Fatalf("releases (-want +got):\n%s", cmp.Diff(r.released, plan.Releases()))
		}
		if !slices.Equal(r.created, plan.Creates()) {
			t.Fatalf("creates (-want +got):\n%s", cmp.Diff(r.created, plan.Creates()))
		}
		if full := len(r.released) == len(d.Releases) && r.creations(func(guard.Create) bool { return true }) == asked(d); !full && len(violations) == 0 {
			t.Fatal("something was refused and nobody told")
		}
	})
}

func asked(d hostabi.Decision) (n uint64) {
	for _, c := range d.Creates {
		n += uint64(c.Count)
	}
	return n
}

// The same question has the same answer, from the store and from a snapshot of it.
func TestCheckIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, lim, d := anyFleet.Draw(t, "fleet"), anyLimits.Draw(t, "limits"), anyDecision.Draw(t, "decision")
		plan, violations := guard.Check(lim, s, d)
		again, same := guard.Check(lim, s.Snapshot(), d)
		if !slices.Equal(plan.Creates(), again.Creates()) || !slices.Equal(plan.Releases(), again.Releases()) || !slices.Equal(violations, same) {
			t.Fatalf("first %v %v, then %v %v", plan, violations, again, same)
		}
	})
}

// A plan asked for as a decision is planned again as it is, and nothing is wrong with it but drains of the busy.
func TestCheckIsIdempotent(t *testing.T) {
	modes := map[guard.Mode]hostabi.ReleaseMode{
		guard.Cancel: hostabi.Cancel, guard.Drain: hostabi.Drain, guard.Kill: hostabi.Kill, guard.DrainWhenIdle: hostabi.Drain,
	}
	rapid.Check(t, func(t *rapid.T) {
		s, lim := anyFleet.Draw(t, "fleet"), anyLimits.Draw(t, "limits")
		plan, _ := guard.Check(lim, s, anyDecision.Draw(t, "decision"))
		var d hostabi.Decision
		for _, r := range plan.Releases() {
			d.Releases = append(d.Releases, hostabi.Release{Executor: uint64(r.Executor), Mode: modes[r.Mode]})
		}
		for _, c := range plan.Creates() {
			d.Creates = append(d.Creates, hostabi.Create{Profile: uint32(c.Profile), Count: c.Count})
		}
		again, violations := guard.Check(lim, s, d)
		if !slices.Equal(plan.Creates(), again.Creates()) || !slices.Equal(plan.Releases(), again.Releases()) {
			t.Fatalf("planned %v, then %v", plan, again)
		}
		for _, v := range violations {
			if v.Rule != guard.DrainBusy {
				t.Fatalf("its own plan breaks %s: %s", v.Rule, v.Detail)
			}
		}
	})
}

// A bound that is raised never makes a decision come to less.
func TestCheckIsMonotone(t *testing.T) {
	raise := func(bound *uint32, open uint32) {
		if *bound != open {
			*bound++
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, lim, d := anyFleet.Draw(t, "fleet"), anyLimits.Draw(t, "limits"), anyDecision.Draw(t, "decision")
		more := lim
		more.Profiles = slices.Clone(lim.Profiles)
		p := &more.Profiles[rapid.IntRange(0, 1).Draw(t, "profile")]
		switch rapid.IntRange(0, 6).Draw(t, "bound") {
		case 0:
			raise(&p.Ceiling, none)
		case 1:
			raise(&p.Max, none)
		case 2:
			raise(&p.MaxPending, 0)
		case 3:
			raise(&p.AtOnce, 0)
		case 4:
			raise(&more.MaxPending, 0)
		case 5:
			raise(&more.Churn, none)
		default:
			more.LifetimeLeft++
		}
		before, _ := guard.Check(lim, s, d)
		after, _ := guard.Check(more, s, d)
		if size(after) < size(before) {
			t.Fatalf("planned %v, and with more room %v", before, after)
		}
	})
}

func size(p guard.Plan) (n uint64) {
	for _, c := range p.Creates() {
		n += uint64(c.Count)
	}
	return n + uint64(len(p.Releases()))
}
