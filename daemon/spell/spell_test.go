package spell_test

import (
	"testing"

	"github.com/retinue-sched/retinue/daemon/spell"
)

// Each change, addition and removal counts once, in either direction.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"socket", "sokcet", 2}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got, back := spell.Distance(c.a, c.b), spell.Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q are %d and %d apart, want %d", c.a, c.b, got, back, c.want)
		}
	}
}
