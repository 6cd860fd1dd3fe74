package snapshot

import "testing"

func pages(p *page) int {
	if p == nil {
		return 0
	}
	n := 1
	if p.kids != nil {
		for _, kid := range p.kids {
			n += pages(kid)
		}
	}
	return n
}

// What is kept depends on how many executors there are, and not on how many there ever were.
func TestTreeIsBoundedByWhoIsThere(t *testing.T) {
	const fleet = 100
	s := NewStore()
	for id := ID(1); id <= 50_000; id++ {
		s.Assume(0, Executor{ID: id, Profile: Profile(id % 1000)})
		if id > fleet {
			s.Forget(id - fleet)
		}
		if id%97 == 0 {
			s.Snapshot()
		}
	}
	if n := pages(s.tree.root); n > 12 {
		t.Errorf("%d pages for %d executors", n, fleet)
	}
	if len(s.rows) != fleet {
		t.Errorf("%d profiles are counted for %d executors", len(s.rows), fleet)
	}
	for e := range s.Snapshot().All() {
		s.Forget(e.ID)
	}
	if s.tree.root != nil || s.Len() != 0 || len(s.rows) != 0 {
		t.Errorf("%d pages, %d profiles for nobody", pages(s.tree.root), len(s.rows))
	}
}
