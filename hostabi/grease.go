//go:build !wasip1

package hostabi

// What Grease adds. Version 1 will never give these numbers a meaning.
const (
	greaseTable  = 0x7f00
	greaseColumn = 0x7f00
	greaseType   = 0x7f
)

// Grease returns a copy of a checked block with things that no reader knows: a table, in every table but strings a
// column, and in the new table a column of an unknown type. Whoever reads a block must read the copy alike. Tests
// show policies such blocks, so that none comes to depend on there being nothing new.
func Grease(b Block) []byte {
	var e encoder
	grown := b.tables + 1
	columns := b.columnCount() + b.tables + 2
	e.entry = headerSize + entrySize*grown
	e.end = e.entry + entrySize*columns
	e.block = make([]byte, 0, len(b.b)+entrySize*(columns+1)+8*columns)
	e.block = e.block[:e.end]
	e.header(b.Hook(), grown)
	e.tableEntry(0, greaseTable, 3, 2, 0)
	e.raw(entry{id: 1, typ: greaseType, elem: 5, data: []byte("junk!")}, 3)
	e.raw(entry{id: greaseColumn, typ: U32, elem: 4, data: make([]byte, 12)}, 3)
	first := 2
	for i := range b.tables {
		t := b.tableAt(i)
		count := t.columns
		for j := range t.columns {
			c, _ := t.find(t.entryAt(j).id)
			e.raw(c, t.rows)
		}
		if t.id != TableStrings {
			count++
			e.raw(entry{id: greaseColumn, typ: U8, elem: 1, null: true, data: make([]byte, t.rows), bitmap: make([]byte, bitmapSize(t.rows))}, t.rows)
		}
		e.tableEntry(i+1, t.id, t.rows, count, first)
		first += count
	}
	return e.block
}

// raw appends a column as it is, with its bitmap.
func (e *encoder) raw(c entry, rows int) {
	at := e.columnEntry(&column{id: c.id, typ: c.typ}, len(c.data))
	own := e.block[e.entry-entrySize:]
	putU32(own[4:], uint32(c.elem))
	if c.null {
		own[3] = nullable
		e.end += align(bitmapSize(rows))
	}
	e.block = append(e.block, make([]byte, e.end-len(e.block))...)
	copy(e.block[at:], c.data)
	copy(e.block[at+align(len(c.data)):], c.bitmap)
}

// columnCount returns how many columns all tables have.
func (b Block) columnCount() int {
	n := 0
	for i := range b.tables {
		n += b.tableAt(i).columns
	}
	return n
}
