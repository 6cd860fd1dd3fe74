package sdk

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A run of equal numbers is as long as a look at each says.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var numbers []uint32
		for range rapid.IntRange(1, 8).Draw(t, "runs") {
			numbers = append(numbers, slices.Repeat([]uint32{rapid.Uint32Range(0, 7).Draw(t, "number")}, rapid.IntRange(1, 20).Draw(t, "length"))...)
		}
		want := slices.IndexFunc(numbers, func(n uint32) bool { return n != numbers[0] })
		if want < 0 {
			want = len(numbers)
		}
		if got := same(numbers); got != want {
			t.Fatalf("%d of %v are the same, want %d", got, numbers, want)
		}
	})
}
