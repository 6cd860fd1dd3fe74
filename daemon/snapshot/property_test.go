package snapshot_test

import (
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	. "github.com/retinue-sched/retinue/daemon/snapshot"
)

// recount counts as the comments of Counts say, in the most obvious way.
func recount(all iter.Seq[Executor], of func(Executor) bool) Counts {
	var c Counts
	for e := range all {
		if !of(e) {
			continue
		}
		c.ByPhase[e.Phase]++
		if e.Phase.Terminal() {
			continue
		}
		if e.Load.Registered {
			c.Registered++
			c.Slots += e.Load.Slots
			c.BusySlots += e.Load.Busy
		}
		if e.Load.Registered && e.Load.Busy > 0 {
			c.Busy++
		}
		if !e.Load.Registered && (e.Phase == Requested || e.Phase == Pending) {
			c.Unregistered++
			if e.Phase == Requested && !e.Load.Draining {
				c.Unseen++
			}
		}
		if e.Condemned {
			c.Condemned++
		}
		if e.Load.Draining && e.Phase != Terminating {
			c.Draining++
		}
	}
	return c
}

// reader is what a Store and a Snapshot have in common.
type reader interface {
	All() iter.Seq[Executor]
	Executor(id ID) (Executor, bool)
	Len() int
	Counts(p Profile) Counts
	Total() Counts
}

// checkReader compares everything that can be read with what should be there.
func checkReader(t *rapid.T, r reader, want map[ID]Executor) {
	got := slices.Collect(r.All())
	sorted := make([]Executor, 0, len(want))
	for _, id := range slices.Sorted(maps.Keys(want)) {
		sorted = append(sorted, want[id])
	}
	if !slices.Equal(sorted, got) {
		t.Fatalf("executors (-want +got):\n%s", cmp.Diff(sorted, got))
	}
	if r.Len() != len(want) {
		t.Fatalf("len %d, want %d", r.Len(), len(want))
	}
	for id, e := range want {
		if found, ok := r.Executor(id); !ok || found != e {
			t.Fatalf("executor %d: got %+v, %v, want %+v", id, found, ok, e)
		}
	}
	for p := range Profile(4) {
		if c := recount(slices.Values(sorted), func(e Executor) bool { return e.Profile == p }); c != r.Counts(p) {
			t.Fatalf("counts of profile %d (-want +got):\n%s", p, cmp.Diff(c, r.Counts(p)))
		}
	}
	if c := recount(slices.Values(sorted), func(Executor) bool { return true }); c != r.Total() {
		t.Fatalf("total (-want +got):\n%s", cmp.Diff(c, r.Total()))
	}
}

// Whatever is done to a store, it holds exactly what it should, its counts are those of a recount, and each snapshot stays what it was.
func TestStoreHoldsWhatItShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore()
		want := make(map[ID]Executor)
		type kept struct {
			snap *Snapshot
			want map[ID]Executor
		}
		var snaps []kept
		id := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) ID { return ID(rapid.Uint64Range(1, 70).Draw(t, "near")) }),
			rapid.SampledFrom([]ID{1, 31, 32, 33, 1023, 1024, 1025, 1 << 20, 1<<20 + 1, 1 << 40, 1 << 63, 1<<64 - 1}),
		)
		read := func(id ID) {
			if e, ok := s.Executor(id); ok {
				want[id] = e
			}
		}
		load := rapid.Custom(func(t *rapid.T) Load {
			return Load{
				Registered: rapid.Bool().Draw(t, "registered"), Draining: rapid.Bool().Draw(t, "draining"),
				Slots: rapid.Uint32Range(0, 4).Draw(t, "slots"), Busy: rapid.Uint32Range(0, 4).Draw(t, "busy"),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"assume": func(t *rapid.T) {
				e := Executor{ID: id.Draw(t, "id"), Profile: Profile(rapid.Uint32Range(0, 3).Draw(t, "profile"))}
				if s.Assume(t1, e) {
					e.Phase, e.Since, e.Asked = Requested, t1, t1
					want[e.ID] = e
				}
			},
			"load": func(t *rapid.T) {
				id, l := id.Draw(t, "id"), load.Draw(t, "load")
				e, known := want[id]
				if s.SetLoad(id, l) != known {
					t.Fatalf("a load of executor %d: known %v", id, known)
				}
				if known {
					e.Load = l
					want[id] = e
				}
			},
			"observe": func(t *rapid.T) {
				o := Observation{ID: id.Draw(t, "id"), Phase: Phase(rapid.IntRange(0, 8).Draw(t, "phase")), Profile: 1}
				s.Observe(t2, o)
				read(o.ID)
			},
			"condemn": func(t *rapid.T) { id := id.Draw(t, "id"); s.Condemn(t2, id); read(id) },
			"spare":   func(t *rapid.T) { id := id.Draw(t, "id"); s.Spare(t2, id); read(id) },
			"lose":    func(t *rapid.T) { id := id.Draw(t, "id"); s.Lose(t2, id); read(id) },
			"forget":  func(t *rapid.T) { id := id.Draw(t, "id"); s.Forget(id); delete(want, id) },
			"publish": func(*rapid.T) {
				if len(snaps) < 8 {
					snaps = append(snaps, kept{s.Snapshot(), maps.Clone(want)})
				}
			},
			"": func(t *rapid.T) { checkReader(t, s, want) },
		})
		for _, k := range snaps {
			checkReader(t, k.snap, k.want)
		}
	})
}

// server is a cluster's history of the pods of one application: a version for each change.
type server struct {
	history []Observation // the pod after change i, which has version i+1
	now     map[ID]Observation
}

func (s *server) commit(o Observation) {
	o.Version = Version(len(s.history) + 1)
	s.history = append(s.history, o)
	if o.Phase == Deleted {
		delete(s.now, o.ID)
		return
	}
	s.now[o.ID] = o
}

// list is what there was at a version.
func (s *server) list(v Version) []Observation {
	at := make(map[ID]Observation)
	for _, o := range s.history[:v] {
		if at[o.ID] = o; o.Phase == Deleted {
			delete(at, o.ID)
		}
	}
	return slices.Collect(func(yield func(Observation) bool) {
		for _, id := range slices.Sorted(maps.Keys(at)) {
			if !yield(at[id]) {
				return
			}
		}
	})
}

// next is what may become of a pod.
func next(p Phase) []Phase {
	switch p {
	case Pending:
		return []Phase{Pending, Unknown, Running, Terminating, Failed, Deleted}
	case Running, Unknown:
		return []Phase{Running, Unknown, Terminating, Failed, Succeeded, Deleted}
	case Terminating:
		return []Phase{Terminating, Failed, Succeeded, Deleted}
	case Succeeded, Failed:
		return []Phase{Deleted}
	case Requested, Deleted, Lost:
	}
	return nil
}

// Whatever comes in of a cluster's history and in whatever order (lists of any moment, stretches of a watch, repeats, reconnects that go back in
// time), nobody who ended comes back, and after the last list the store agrees with it.
func TestLastListIsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := &server{now: make(map[ID]Observation)}
		s := NewStore()
		ended := make(map[ID]bool) // also if forgotten
		made := ID(0)
		born := make(map[ID]Version)
		check := func(t *rapid.T) {
			for e := range s.All() {
				if e.Live() && ended[e.ID] {
					t.Fatalf("executor %d came back: %+v", e.ID, e)
				}
				ended[e.ID] = ended[e.ID] || !e.Live()
			}
		}
		version := func(t *rapid.T) Version { return Version(rapid.IntRange(0, len(cluster.history)).Draw(t, "version")) }
		known := func(t *rapid.T) ID { return ID(rapid.Uint64Range(1, max(1, uint64(made))).Draw(t, "id")) }
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				made++
				if rapid.Bool().Draw(t, "assumed") {
					s.Assume(t0, Executor{ID: made})
				}
				cluster.commit(Observation{ID: made, UID: uid(made), Phase: Pending})
				born[made] = Version(len(cluster.history))
			},
			"change": func(t *rapid.T) {
				if o, ok := cluster.now[known(t)]; ok {
					o.Phase = rapid.SampledFrom(next(o.Phase)).Draw(t, "phase")
					cluster.commit(o)
				}
			},
			"answer": func(t *rapid.T) {
				if id := known(t); born[id] > 0 {
					s.Created(id, uid(id), born[id])
				}
			},
			"watch": func(t *rapid.T) {
				from := version(t)
				for _, o := range cluster.history[from:max(from, version(t))] {
					s.Observe(t1, o)
				}
			},
			"list": func(t *rapid.T) {
				if v := version(t); v > 0 {
					s.Replace(t1, v, cluster.list(v))
				}
			},
			"lose": func(t *rapid.T) { s.Lose(t1, known(t)) },
			"forget": func(t *rapid.T) {
				if id := known(t); ended[id] {
					if e, ok := s.Executor(id); ok && e.Gone {
						s.Forget(id)
					}
				}
			},
			"": check,
		})
		cluster.commit(Observation{ID: made + 1, UID: uid(made + 1), Phase: Running}) // so that there is a last version
		last := Version(len(cluster.history))
		s.Replace(t2, last, cluster.list(last))
		check(t)
		agree(t, s, cluster.now)
	})
}

func uid(id ID) string { return "uid of " + string(rune('0'+id%10)) + string(rune('a'+id/10)) }

// agree compares a store with what there is in the cluster.
func agree(t *rapid.T, s *Store, now map[ID]Observation) {
	for id, o := range now {
		e, ok := s.Executor(id)
		switch {
		case !ok:
			if !o.Phase.Terminal() {
				t.Fatalf("executor %d is %v and unknown", id, o.Phase)
			}
		case e.Gone:
			t.Fatalf("executor %d is there and believed to be gone", id)
		case e.Phase == Lost:
		case o.Phase == Unknown:
			if e.Phase != Pending && e.Phase != Running {
				t.Fatalf("executor %d is %v, it cannot be told how it is", id, e.Phase)
			}
		case e.Phase != o.Phase:
			t.Fatalf("executor %d is %v, want %v", id, e.Phase, o.Phase)
		}
	}
	for e := range s.All() {
		if _, there := now[e.ID]; !there && e.Live() && e.Born != 0 {
			t.Fatalf("executor %d is gone and believed to be %v", e.ID, e.Phase)
		}
	}
}
