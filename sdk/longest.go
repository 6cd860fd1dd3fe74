package sdk

import "slices"

// LongestIdleFirst puts IdleRunning in the order in which its executors became idle; those of one moment stay in the
// order of their ids.
//
// What it costs grows with their number and no faster: in a sandbox, comparing ten thousand with each other takes
// longer than a policy may take. Nor does it leave garbage, which costs even more to collect there.
func (f *Fleet) LongestIdleFirst(v *View) {
	f.spare = slices.Grow(f.spare[:0], len(f.IdleRunning))[:len(f.IdleRunning)]
	f.IdleRunning, f.spare = sorted(f.IdleRunning, f.spare, v.Executors.IdleSinceMS())
}

// sorted returns rows in the order of their times, a column with one value a row of the table, and the memory that is
// not in use: one of both is from, the other spare, which is as long. It sorts by one digit after the other, the
// lowest first.
func sorted(from, spare []int, times []int64) (rows, rest []int) {
	if len(from) < 2 {
		return from, spare
	}
	low, high := times[from[0]], times[from[0]]
	for _, row := range from {
		low, high = min(low, times[row]), max(high, times[row])
	}
	const digit = 8 // bits
	for shift := 0; (uint64(high)-uint64(low))>>shift > 0; shift += digit {
		var next [1 << digit]int // where the next row with each value of the digit goes
		for _, row := range from {
			next[uint8((uint64(times[row])-uint64(low))>>shift)]++
		}
		sum := 0
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		for _, row := range from {
			at := &next[uint8((uint64(times[row])-uint64(low))>>shift)]
			spare[*at] = row
			*at++
		}
		from, spare = spare, from
	}
	return from, spare
}
