package hostabi

// Projection says which columns of which table a view has. The zero Projection keeps everything; a table that
// was not named by With is kept whole. Projections can be compared.
type Projection struct {
	named uint32 // bit n: table n was named
	keep  [TableExecutors + 1]uint64
}

// With returns p with table reduced to the given columns, in addition to those it was reduced to before. With no
// columns only the number of rows is left. Tables and columns that this version does not know are ignored.
func (p Projection) With(table TableID, columns ...ColumnID) Projection {
	if table == TableStrings || table > TableExecutors {
		return p
	}
	p.named |= 1 << table
	for _, c := range columns {
		p.keep[table] |= 1 << c // a shift by 64 or more gives 0
	}
	return p
}

// Keeps reports whether a view has the column.
func (p Projection) Keeps(table TableID, column ColumnID) bool {
	return p.mask(table)&(1<<column) != 0
}

// mask returns the kept columns of a table, one bit each.
func (p Projection) mask(table TableID) uint64 {
	if table > TableExecutors || p.named&(1<<table) == 0 {
		return ^uint64(0)
	}
	return p.keep[table]
}
