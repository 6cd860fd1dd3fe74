package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/retinue-sched/retinue/daemon/snapshot"
)

const (
	t0 = Instant(0)
	t1 = Instant(1e9)
	t2 = Instant(2e9)
)

// pod is an observation of executor 1's pod.
func pod(v Version, p Phase) Observation {
	return Observation{ID: 1, Phase: p, UID: "u1", Name: "app-exec-1", Version: v}
}

func asked() *Store {
	s := NewStore()
	s.Assume(t0, Executor{ID: 1, Name: "app-exec-1"})
	return s
}

// created is a store with executor 1, whose creation was answered at version 10.
func created() *Store {
	s := asked()
	s.Created(1, "u1", 10)
	return s
}

func executor(t *testing.T, s interface {
	Executor(ID) (Executor, bool)
}, id ID,
) Executor {
	t.Helper()
	e, ok := s.Executor(id)
	if !ok {
		t.Fatalf("there is no executor %d", id)
	}
	return e
}

func phase(t *testing.T, s *Store) Phase { t.Helper(); return executor(t, s, 1).Phase }

// What is seen of an executor, in the order in which it comes in, leads to the phase.
func TestObservedPhases(t *testing.T) {
	cases := map[string]struct {
		seen []Observation
		want Phase
	}{
		"nothing":                                 {nil, Requested},
		"pending":                                 {[]Observation{pod(11, Pending)}, Pending},
		"running":                                 {[]Observation{pod(11, Pending), pod(12, Running)}, Running},
		"running, pending unseen":                 {[]Observation{pod(11, Running)}, Running},
		"the creation's own event":                {[]Observation{pod(10, Pending)}, Pending},
		"unknown is seen, and so no more asked":   {[]Observation{pod(11, Unknown)}, Pending},
		"unknown changes nothing else":            {[]Observation{pod(11, Running), pod(12, Unknown)}, Running},
		"succeeded":                               {[]Observation{pod(11, Running), pod(12, Succeeded)}, Succeeded},
		"failed":                                  {[]Observation{pod(11, Running), pod(12, Failed)}, Failed},
		"deleted while running":                   {[]Observation{pod(11, Running), pod(12, Deleted)}, Deleted},
		"deleted at first sight":                  {[]Observation{pod(12, Deleted)}, Deleted},
		"failed, then its object is deleted":      {[]Observation{pod(11, Failed), pod(12, Deleted)}, Failed},
		"deletion asked while running":            {[]Observation{pod(11, Running), pod(12, Terminating)}, Terminating},
		"terminating until it ends":               {[]Observation{pod(11, Terminating), pod(12, Running)}, Terminating},
		"terminating, then failed":                {[]Observation{pod(11, Terminating), pod(12, Failed)}, Failed},
		"an older event":                          {[]Observation{pod(12, Running), pod(11, Pending)}, Running},
		"an older event after the end":            {[]Observation{pod(12, Failed), pod(11, Running)}, Failed},
		"a newer event after the end":             {[]Observation{pod(12, Failed), pod(13, Running)}, Failed},
		"an event after the deletion":             {[]Observation{pod(12, Deleted), pod(13, Running)}, Deleted},
		"the same version says two things":        {[]Observation{pod(12, Running), pod(12, Failed)}, Running},
		"a deletion at the last object's version": {[]Observation{pod(12, Running), pod(12, Deleted)}, Deleted},
		"no versions: the last word counts":       {[]Observation{pod(0, Pending), pod(0, Running)}, Running},
		"phases that a cluster never says":        {[]Observation{pod(11, Lost), pod(12, Requested)}, Pending},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := created()
			for _, o := range c.seen {
				s.Observe(t1, o)
			}
			if got := phase(t, s); got != c.want {
				t.Errorf("phase %v, want %v", got, c.want)
			}
		})
	}
}

// Events change their own executor and add to the others; a list says who is no more there. A snapshot stays what it was.
func TestSnapshotsFollow(t *testing.T) {
	seen := func(id ID, v Version, p Phase) Observation { return Observation{ID: id, Version: v, Phase: p} }
	show := func(s *Snapshot) map[ID]Phase {
		phases := make(map[ID]Phase)
		for e := range s.All() {
			phases[e.ID] = e.Phase
		}
		return phases
	}
	s := NewStore()
	empty := s.Snapshot()
	s.Replace(t0, 5, []Observation{seen(1, 1, Pending), seen(2, 2, Running)})
	first := s.Snapshot()
	s.Observe(t1, seen(2, 6, Succeeded))
	second := s.Snapshot()
	s.Observe(t1, seen(3, 7, Pending))
	third := s.Snapshot()
	s.Replace(t2, 9, []Observation{seen(3, 7, Pending), seen(4, 8, Pending)})
	want := []map[ID]Phase{
		{},
		{1: Pending, 2: Running},
		{1: Pending, 2: Succeeded},
		{1: Pending, 2: Succeeded, 3: Pending},
		{1: Deleted, 2: Succeeded, 3: Pending, 4: Pending},
	}
	got := []map[ID]Phase{show(empty), show(first), show(second), show(third), show(s.Snapshot())}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if third.Newest() != 7 || s.Newest() != 9 {
		t.Errorf("newest %d, then %d; want 7, then 9", third.Newest(), s.Newest())
	}
}

// Since is when a phase was entered, and not when it was last confirmed.
func TestSinceIsTheEntry(t *testing.T) {
	s := created()
	s.Observe(t1, pod(11, Pending))
	s.Observe(t2, pod(12, Pending))
	if e := executor(t, s, 1); e.Since != t1 || e.Asked != t0 {
		t.Errorf("asked %v, since %v; want %v and %v", e.Asked, e.Since, t0, t1)
	}
}

// A change is told with what was before; what changes nothing but a version is not told.
func TestChangesAreTold(t *testing.T) {
	s := created()
	before := executor(t, s, 1)
	c, ok := s.Observe(t1, pod(11, Pending))
	if !ok || c.Adopted || cmp.Diff(before, c.Before) != "" || cmp.Diff(executor(t, s, 1), c.After) != "" {
		t.Errorf("got %+v, %v", c, ok)
	}
	if c, ok := s.Observe(t1, pod(12, Pending)); ok {
		t.Errorf("a mere version was told: %+v", c)
	}
	if v := executor(t, s, 1).Version; v != 12 {
		t.Errorf("version %d, want 12", v)
	}
	if _, ok := s.Observe(t1, pod(12, Pending)); ok {
		t.Error("a repeated event was told")
	}
}

// A pod of another life or another name is not the executor's, and is one too many unless it is going already.
func TestOtherLives(t *testing.T) {
	stranger := func(change func(*Observation)) Observation {
		o := pod(20, Running)
		change(&o)
		return o
	}
	otherUID := stranger(func(o *Observation) { o.UID = "u2" })
	cases := map[string]struct {
		store   *Store
		o       Observation
		own     bool
		surplus bool
	}{
		"ours":                                  {created(), pod(20, Running), true, false},
		"another life":                          {created(), otherUID, false, true},
		"another life, being deleted":           {created(), stranger(func(o *Observation) { o.UID, o.Deleting = "u2", true }), false, false},
		"another life, gone":                    {created(), stranger(func(o *Observation) { o.UID, o.Phase = "u2", Deleted }), false, false},
		"another life, ended and being deleted": {created(), stranger(func(o *Observation) { o.UID, o.Phase, o.Deleting = "u2", Failed, true }), false, false},
		"another name":                          {created(), stranger(func(o *Observation) { o.UID, o.Name = "u2", "mine" }), false, true},
		"unanswered creation":                   {asked(), otherUID, true, false},
		"unanswered creation, others' name":     {asked(), stranger(func(o *Observation) { o.Name = "mine" }), false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, ok := c.store.Observe(t1, c.o)
			if ok != c.own {
				t.Errorf("taken for the executor's: %v, want %v", ok, c.own)
			}
			if got := c.store.Surplus(&c.o); got != c.surplus {
				t.Errorf("surplus: %v, want %v", got, c.surplus)
			}
			want := Requested
			if c.own {
				want = Running
			}
			if got := phase(t, c.store); got != want {
				t.Errorf("phase %v, want %v", got, want)
			}
		})
	}
}

// Who is unknown and lives is adopted; who is unknown and has ended is not, and is surplus.
func TestAdoption(t *testing.T) {
	s := NewStore()
	o := pod(20, Running)
	o.Profile = 3
	c, ok := s.Observe(t1, o)
	if !ok || !c.Adopted || c.After.Phase != Running || c.After.Profile != 3 || c.After.Born != 20 {
		t.Errorf("got %+v, %v", c, ok)
	}
	ended := Observation{ID: 2, UID: "u2", Version: 21, Phase: Failed}
	if _, ok := s.Observe(t1, ended); ok || s.Len() != 1 {
		t.Error("an ended pod was adopted")
	}
	if !s.Surplus(&ended) {
		t.Error("an ended pod that nobody knows is not surplus")
	}
	if ended.Deleting = true; s.Surplus(&ended) {
		t.Error("a pod that is going already is surplus")
	}
	if _, ok := s.Observe(t1, Observation{Phase: Running, Version: 22}); ok {
		t.Error("executor 0 was adopted")
	}
}

// An old event does not bring back who was forgotten, whether a list or a deletion settled it.
func TestForgottenStaysForgotten(t *testing.T) {
	gone := map[string]func(*Store){
		"deleted": func(s *Store) { s.Observe(t1, pod(20, Deleted)) },
		"missing": func(s *Store) { s.Replace(t1, 20, nil) },
	}
	for name, end := range gone {
		t.Run(name, func(t *testing.T) {
			s := created()
			end(s)
			s.Forget(1)
			for _, v := range []Version{11, 20} {
				if c, ok := s.Observe(t2, pod(v, Running)); ok {
					t.Errorf("an event of version %d brought it back: %+v", v, c)
				}
			}
			if changes := s.Replace(t2, 15, []Observation{pod(11, Running)}); len(changes) > 0 {
				t.Errorf("an older list brought it back: %+v", changes)
			}
			if c, ok := s.Observe(t2, Observation{ID: 2, Version: 21, Phase: Pending}); !ok || !c.Adopted {
				t.Error("a newer pod was not adopted")
			}
		})
	}
}

// Who is unknown and was last seen before the newest list had ended by then.
func TestListSettlesWhoIsUnknown(t *testing.T) {
	s := NewStore()
	s.Replace(t0, 50, nil)
	if c, ok := s.Observe(t1, pod(50, Running)); ok {
		t.Errorf("adopted: %+v", c)
	}
	if c, ok := s.Observe(t1, pod(51, Running)); !ok || !c.Adopted {
		t.Error("one that is newer was not adopted")
	}
}

// What is gone stays gone.
func TestGoneIsForGood(t *testing.T) {
	s := created()
	s.Observe(t1, pod(12, Deleted))
	if c, ok := s.Observe(t2, pod(13, Failed)); ok || !executor(t, s, 1).Gone {
		t.Errorf("it is back: %+v", c)
	}
}

// The rules about absence: only a list at least as new as the creation and the newest observation shows that a pod is gone.
func TestAbsence(t *testing.T) {
	running := func() *Store {
		s := created()
		s.Observe(t0, pod(30, Running))
		return s
	}
	cases := map[string]struct {
		store *Store
		list  Version
		want  Phase
		gone  bool
	}{
		"list older than the creation":         {created(), 9, Requested, false},
		"list of the creation's version":       {created(), 10, Deleted, true},
		"list newer than the creation":         {created(), 11, Deleted, true},
		"creation never answered":              {asked(), 1000, Requested, false},
		"list older than the newest sight":     {running(), 29, Running, false},
		"list as new as the newest sight":      {running(), 30, Deleted, true},
		"list without a version":               {running(), 0, Running, false},
		"ended, and its object is gone":        {ended(), 31, Failed, true},
		"condemned, and never answered":        {condemned(asked()), 1000, Terminating, false},
		"condemned, and answered":              {condemned(created()), 10, Deleted, true},
		"condemned while running":              {condemned(running()), 30, Deleted, true},
		"found under our name, not made now":   {found(), 40, Deleted, true},
		"found under our name, and list older": {found(), 39, Requested, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := executor(t, c.store, 1)
			changes := c.store.Replace(t2, c.list, nil)
			after := executor(t, c.store, 1)
			if after.Phase != c.want || after.Gone != c.gone {
				t.Errorf("phase %v, gone %v; want %v, %v", after.Phase, after.Gone, c.want, c.gone)
			}
			var want []Change
			if c.gone {
				want = []Change{{Before: before, After: after}}
			}
			if diff := cmp.Diff(want, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func ended() *Store {
	s := created()
	s.Observe(t0, pod(30, Failed))
	return s
}

func condemned(s *Store) *Store {
	s.Condemn(t1, 1)
	return s
}

func found() *Store {
	s := asked()
	s.Created(1, "u1", 40)
	return s
}

// A list older than the newest accepted one changes nothing; an equally new one is taken.
func TestOlderListIsRefused(t *testing.T) {
	s := NewStore()
	s.Replace(t0, 50, []Observation{pod(20, Running)})
	if changes := s.Replace(t1, 49, []Observation{{ID: 2, UID: "u2", Version: 45, Phase: Running}}); changes != nil || s.Len() != 1 {
		t.Errorf("it was taken: %+v", changes)
	}
	if s.Listed() != 50 {
		t.Errorf("listed %d, want 50", s.Listed())
	}
	if changes := s.Replace(t1, 50, nil); len(changes) != 1 || phase(t, s) != Deleted {
		t.Errorf("an equally new list was not taken: %+v", changes)
	}
}

// Changes of a list come in ascending order of ID, whatever the order of the list.
func TestListChangesAreOrdered(t *testing.T) {
	s := created()
	changes := s.Replace(t1, 50, []Observation{
		{ID: 40, UID: "u40", Version: 41, Phase: Running}, {ID: 2, UID: "u2", Version: 42, Phase: Pending}, {ID: 3, UID: "u3", Version: 43, Phase: Failed},
	})
	var ids []ID
	for _, c := range changes {
		ids = append(ids, c.After.ID)
	}
	if diff := cmp.Diff([]ID{1, 2, 40}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// How a container ended is not forgotten when its object goes.
func TestExitIsKept(t *testing.T) {
	s := created()
	o := pod(20, Failed)
	o.Exit = Exit{Known: true, Code: 137, Reason: "OOMKilled"}
	s.Observe(t1, o)
	late := pod(21, Deleted)
	late.Exit = Exit{Reason: "Error"}
	s.Observe(t1, late)
	if e := executor(t, s, 1); e.Exit != o.Exit || !e.Gone {
		t.Errorf("exit %+v, gone %v", e.Exit, e.Gone)
	}
}
