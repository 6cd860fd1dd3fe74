package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/retinue-sched/retinue/daemon/snapshot"
)

// An executor that was asked for is Requested, and what its maker cannot know does not count.
func TestAssume(t *testing.T) {
	s := NewStore()
	wish := Executor{ID: 7, Profile: 2, Name: "app-exec-7", Zone: "z", Phase: Running, UID: "u", Condemned: true, Gone: true, Since: 5}
	if !s.Assume(t1, wish) {
		t.Error("it was not taken")
	}
	want := Executor{ID: 7, Profile: 2, Name: "app-exec-7", Zone: "z", Phase: Requested, Since: t1, Asked: t1}
	if diff := cmp.Diff(want, executor(t, s, 7)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Assume(t2, Executor{ID: 7}) || s.Assume(t2, Executor{}) {
		t.Error("a known id, or 0, was taken")
	}
	if e, ok := s.Executor(8); ok || e != (Executor{}) {
		t.Errorf("executor 8 is %+v, %v", e, ok)
	}
}

// The answer to a creation gives the executor its pod, unless a pod was seen before.
func TestCreated(t *testing.T) {
	unseen := asked()
	unseen.Created(1, "u1", 10)
	unseen.Created(1, "older", 9)
	if e := executor(t, unseen, 1); e.UID != "u1" || e.Born != 10 || e.Version != 0 || !e.Unseen() {
		t.Errorf("unseen: %+v", e)
	}
	seen := asked()
	seen.Observe(t1, pod(20, Running))
	seen.Created(1, "another", 30)
	if e := executor(t, seen, 1); e.UID != "u1" || e.Born != 20 {
		t.Errorf("seen: uid %s, born %d", e.UID, e.Born)
	}
	lost := asked()
	lost.Lose(t1, 1)
	lost.Created(1, "u1", 10)
	if e := executor(t, lost, 1); e.UID != "u1" || e.Phase != Lost {
		t.Errorf("lost: uid %s, %v", e.UID, e.Phase)
	}
	NewStore().Created(1, "u1", 10)
}

// Whose end was asked for is Terminating until it ends, whatever the cluster still shows.
func TestCondemn(t *testing.T) {
	s := created()
	s.Observe(t0, pod(11, Pending))
	if !s.Condemn(t1, 1) || s.Condemn(t1, 1) {
		t.Error("not condemned once")
	}
	s.Observe(t2, pod(12, Running))
	e := executor(t, s, 1)
	if e.Phase != Terminating || e.Since != t1 || e.Seen != Running || !e.Condemned {
		t.Errorf("got %+v", e)
	}
	s.Observe(t2, pod(13, Succeeded))
	if got := phase(t, s); got != Succeeded {
		t.Errorf("phase %v, want Succeeded", got)
	}
	if s.Condemn(t2, 1) || s.Condemn(t2, 2) {
		t.Error("an ended or unknown executor was condemned")
	}
}

// When a deletion was refused the executor is again what the cluster showed, unless it goes all the same.
func TestSpare(t *testing.T) {
	cases := map[string]struct {
		seen []Observation
		ok   bool
		want Phase
	}{
		"unseen":             {nil, true, Requested},
		"pending":            {[]Observation{pod(11, Pending)}, true, Pending},
		"started meanwhile":  {[]Observation{pod(11, Running)}, true, Running},
		"deleted by others":  {[]Observation{pod(11, Terminating)}, false, Terminating},
		"has ended":          {[]Observation{pod(11, Failed)}, false, Failed},
		"another one is not": {nil, true, Requested},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := condemned(created())
			for _, o := range c.seen {
				s.Observe(t1, o)
			}
			if got := s.Spare(t2, 1); got != c.ok {
				t.Errorf("spared: %v, want %v", got, c.ok)
			}
			if e := executor(t, s, 1); e.Phase != c.want || e.Live() && e.Condemned == c.ok {
				t.Errorf("%v, condemned: %v", e.Phase, e.Condemned)
			}
			if s.Spare(t2, 2) {
				t.Error("an unknown executor was spared")
			}
		})
	}
	if created().Spare(t1, 1) {
		t.Error("one that was not condemned was spared")
	}
}

// Only who was never seen is lost, and who is lost never comes back, but can be found to be deleted.
func TestLose(t *testing.T) {
	seen := created()
	seen.Observe(t1, pod(11, Pending))
	if _, ok := seen.Lose(t2, 1); ok {
		t.Error("a seen executor was lost")
	}
	s := asked()
	c, ok := s.Lose(t1, 1)
	if !ok || c.Before.Phase != Requested || c.After.Phase != Lost || c.After.Since != t1 {
		t.Errorf("got %+v, %v", c, ok)
	}
	late := pod(20, Running)
	s.Observe(t2, late)
	if e := executor(t, s, 1); e.Phase != Lost || e.UID != "u1" || e.Seen != Running {
		t.Errorf("got %+v", e)
	}
	if !s.Surplus(&late) {
		t.Error("its pod is not surplus")
	}
	if c, ok := condemned(asked()).Lose(t2, 1); !ok || c.After.Phase != Lost {
		t.Errorf("a condemned creation that was never answered was not lost: %+v", c)
	}
}

// Targets are kept per profile and listed in order; a profile without a target wants none.
func TestTargets(t *testing.T) {
	s := NewStore()
	s.SetTarget(Target{Profile: 5, Count: 2})
	before := s.Snapshot()
	s.SetTarget(Target{Profile: 1, Count: 3})
	s.SetTarget(Target{Profile: 5, Count: 0})
	s.Assume(t0, Executor{ID: 1, Profile: 9})
	var got []Target
	for target := range s.Targets() {
		got = append(got, target)
	}
	if diff := cmp.Diff([]Target{{1, 3}, {5, 0}}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if s.Target(9) != 0 || before.Target(5) != 2 || before.Target(1) != 0 {
		t.Error("a target was mixed up")
	}
}

// As long as nothing changes the same snapshot is published.
func TestSnapshotIsPublishedOnce(t *testing.T) {
	s := created()
	first := s.Snapshot()
	s.SetLoad(1, Load{})
	s.Created(1, "u1", 10)
	if s.Snapshot() != first {
		t.Error("another one was made")
	}
	if s.SetLoad(2, Load{Busy: 1}) {
		t.Error("an unknown executor has a load")
	}
	s.SetLoad(1, Load{Busy: 1})
	if s.Snapshot() == first || executor(t, first, 1).Load.Busy != 0 {
		t.Error("a published snapshot changed")
	}
}
