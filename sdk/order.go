package sdk

// SortByTime puts rows in the order of their times, a column with one value a row of the table; rows of one time stay
// in the order that they have.
//
// What it costs grows with the number of rows and no faster: in a sandbox, comparing ten thousand with each other
// takes longer than a policy may take.
func SortByTime(rows []int, times []int64) {
	if len(rows) < 2 {
		return
	}
	low, high := times[rows[0]], times[rows[0]]
	for _, row := range rows {
		low, high = min(low, times[row]), max(high, times[row])
	}
	const digit = 8 // bits
	from, to := rows, make([]int, len(rows))
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
			to[*at] = row
			*at++
		}
		from, to = to, from
	}
	copy(rows, from)
}
