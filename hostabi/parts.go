//go:build !wasip1

package hostabi

// Part is a stretch of a block and what stands there, for tools that show blocks to people.
type Part struct {
	At, Length int // bytes
	Name       string
}

// Parts returns what a block consists of, in the order of its bytes. Padding is left out.
func (b Block) Parts() []Part {
	parts := []Part{{0, headerSize, "header, " + b.Hook().String()}}
	for i := range b.tables {
		t := b.tableAt(i)
		parts = append(parts, Part{headerSize + entrySize*i, entrySize, sentence("table ", t.id.String(), ", ", t.rows, " rows")})
	}
	var columns []Part
	for i := range b.tables {
		t := b.tableAt(i)
		for j := range t.columns {
			c := t.entryAt(j)
			name := t.id.String() + "." + ColumnName(t.id, c.id) + " " + c.typ.String()
			parts = append(parts, Part{headerSize + entrySize*(b.tables+t.first+j), entrySize, "entry of " + name})
			columns = append(columns, Part{c.offset, c.length, name})
			if c.null {
				columns = append(columns, Part{align(c.offset + c.length), bitmapSize(t.rows), name + ", which rows have a value"})
			}
		}
	}
	return append(parts, columns...)
}
