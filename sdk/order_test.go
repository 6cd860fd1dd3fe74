package sdk_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/sdk"
)

// Rows are put in the order in which a stable comparison puts them, whatever their times and however far apart.
func TestSortByTimeIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anyTime := rapid.OneOf(rapid.Int64Range(-1, 3), rapid.Int64Range(0, 100_000), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		times := rapid.SliceOfN(anyTime, 0, 50).Draw(t, "times")
		rows := []int{}
		for row := range times {
			if rapid.IntRange(0, 4).Draw(t, "in") > 0 {
				rows = append(rows, row)
			}
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
		sdk.SortByTime(rows, times)
		if !slices.Equal(want, rows) {
			t.Fatalf("got %v, want %v", rows, want)
		}
	})
}
