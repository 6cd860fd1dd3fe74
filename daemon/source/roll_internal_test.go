package source

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

func ours(uid string, version snapshot.Version) look {
	return look{seen: pod.Seen{App: "a", Incarnation: 1, Pod: snapshot.Observation{ID: 1, UID: uid, Version: version}}}
}

// Of pods that are gone nothing is remembered, whoever says that they are: a watch, or a list that lacks them. One that went while a list was under
// way is remembered until that list is there, or until the next begins.
func TestRollForgets(t *testing.T) {
	steps := map[string]struct {
		do   func(roll)
		left []string
	}{
		"a watch":                      {func(r roll) { r.left("old", false) }, []string{"new"}},
		"a list":                       {func(r roll) { r.listed(5, []look{ours("new", 9)}) }, []string{"new"}},
		"a list older than one of two": {func(r roll) { r.listed(5, nil) }, []string{"new"}},
		"an empty list":                {func(r roll) { r.listed(9, nil) }, nil},
		"while a list comes":           {func(r roll) { r.left("new", true) }, []string{"new", "old"}},
		"and when it is there":         {func(r roll) { r.left("new", true); r.listed(5, []look{ours("new", 4), ours("old", 3)}) }, []string{"old"}},
		"and when it fails":            {func(r roll) { r.left("new", true); r.begin() }, []string{"old"}},
		"one that nobody knows":        {func(r roll) { r.left("other", true); r.left("other", false) }, []string{"new", "old"}},
	}
	for name, c := range steps {
		t.Run(name, func(t *testing.T) {
			r := roll{}
			for _, l := range []look{ours("old", 3), ours("new", 9), {seen: ours("foreign", 4).seen, whose: "another's"}} {
				r.recognise(&l)
			}
			c.do(r)
			if diff := cmp.Diff(c.left, slices.Sorted(maps.Keys(r))); diff != "" {
				t.Errorf("known differ (-want +got):\n%s", diff)
			}
		})
	}
}
