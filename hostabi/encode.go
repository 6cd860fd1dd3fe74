package hostabi

import (
	"slices"
	"unsafe"
)

// tile is how many rows are written column by column at a time: few enough for their Go values to stay in the
// processor's first cache while each of their fields is picked out.
const tile = 64

// source is a table to be written: Go rows of the type that its schema describes.
type source struct {
	schema *schema
	rows   int
	base   unsafe.Pointer // the first row; nil without rows
	keep   uint64         // bit n: write the column with id n
}

// rowsOf returns rows as a source that keeps every column.
func rowsOf[T DecisionRow | ProfileRow | ExecutorRow | Create | Release | resultRow](id TableID, rows []T) source {
	return source{schemaOf(id), len(rows), unsafe.Pointer(unsafe.SliceData(rows)), ^uint64(0)}
}

// at returns where the value of a column stands in a row.
func (s *source) at(c *column, row int) unsafe.Pointer {
	return unsafe.Add(s.base, c.offset+uintptr(row)*s.schema.stride)
}

// text returns a value that is a string, or a byte slice read as one: their first words are the same.
func (s *source) text(c *column, row int) string { return *(*string)(s.at(c, row)) }

// keeps reports whether a column is to be written.
func (s *source) keeps(c *column) bool { return s.keep&(1<<c.id) != 0 }

// encoder writes blocks. Its memory is kept from one block to the next.
type encoder struct {
	texts dictionary
	block []byte // the block being written
	entry int    // where the next column's entry goes
	end   int    // where the last column ended
}

// append appends a block to dst and returns the longer slice. Table strings comes last, as its size is known last.
func (e *encoder) append(dst []byte, hook Hook, sources []source) []byte {
	start, columns := len(dst), 1
	for i := range sources {
		columns += sources[i].columns()
	}
	e.entry = headerSize + entrySize*(len(sources)+1)
	e.end = e.entry + entrySize*columns
	size := e.end
	for i := range sources {
		size += sources[i].size()
	}
	dst = slices.Grow(dst, size)
	e.block = dst[start : start+size]
	e.texts.reset()
	e.header(hook, len(sources)+1)
	first := 0
	for i := range sources {
		e.tableEntry(i, sources[i].schema.id, sources[i].rows, sources[i].columns(), first)
		e.table(&sources[i])
		first += sources[i].columns()
	}
	e.tableEntry(len(sources), TableStrings, len(e.texts.texts), 1, first)
	dst = e.strings(dst[:start+size], start)
	e.block = nil
	return dst
}

// columns returns how many columns of s are written.
func (s *source) columns() int {
	n := 0
	for i := range s.schema.columns {
		if s.keeps(&s.schema.columns[i]) {
			n++
		}
	}
	return n
}

// size returns the bytes that the columns of s take.
func (s *source) size() int {
	n := 0
	for i := range s.schema.columns {
		if c := &s.schema.columns[i]; s.keeps(c) {
			n += align(s.length(c))
		}
	}
	return n
}

// length returns the bytes of one column.
func (s *source) length(c *column) int {
	n := c.typ.size() * s.rows
	if c.typ == Bytes {
		n += c.typ.size()
		for row := range s.rows {
			n += len(s.text(c, row))
		}
	}
	return n
}

// header writes the block's header.
func (e *encoder) header(hook Hook, tables int) {
	putU32(e.block, magic)
	putU16(e.block[4:], ABIMajor)
	putU16(e.block[6:], ABIMinor)
	putU32(e.block[8:], uint32(hook))
	putU32(e.block[12:], uint32(tables))
}

// tableEntry writes the entry of the i-th table.
func (e *encoder) tableEntry(i int, id TableID, rows, columns, first int) {
	b := e.block[headerSize+entrySize*i:]
	putU16(b, uint16(id))
	putU16(b[2:], uint16(columns))
	putU32(b[4:], uint32(rows))
	putU32(b[8:], uint32(first))
	putU32(b[12:], 0)
}

// columnEntry writes the next column's entry and returns where the column starts.
func (e *encoder) columnEntry(c *column, length int) (at int) {
	at = e.end
	b := e.block[e.entry:]
	putU16(b, uint16(c.id))
	b[2], b[3] = byte(c.typ), 0
	putU32(b[4:], uint32(c.typ.size()))
	putU32(b[8:], uint32(at))
	putU32(b[12:], uint32(length))
	e.entry += entrySize
	e.end = at + align(length)
	return at
}

// table writes the columns of s and their entries.
func (e *encoder) table(s *source) {
	var starts [64]int
	for i := range s.schema.columns {
		c := &s.schema.columns[i]
		if !s.keeps(c) {
			continue
		}
		length := s.length(c)
		at := e.columnEntry(c, length)
		clear(e.block[at+length : e.end])
		starts[i] = at
		if c.typ == Bytes {
			e.bytes(at, s, c)
		}
	}
	for from := 0; from < s.rows; from += tile {
		to := min(from+tile, s.rows)
		for i := range s.schema.columns {
			if c := &s.schema.columns[i]; s.keeps(c) {
				e.values(e.block[starts[i]:], s, c, from, to)
			}
		}
	}
}

// values writes some rows of a column that is not Bytes; out is where the column starts.
func (e *encoder) values(out []byte, s *source, c *column, from, to int) {
	size, stride := c.typ.size(), s.schema.stride
	out, row := out[size*from:size*to], s.at(c, from)
	switch c.typ {
	case U8:
		for i := range out {
			out[i] = *(*uint8)(unsafe.Add(row, uintptr(i)*stride))
		}
	case U32, I32:
		for i := range to - from {
			putU32(out[4*i:], *(*uint32)(unsafe.Add(row, uintptr(i)*stride)))
		}
	case U64, I64:
		for i := range to - from {
			putU64(out[8*i:], *(*uint64)(unsafe.Add(row, uintptr(i)*stride)))
		}
	case Dict:
		for i := range to - from {
			putU32(out[4*i:], e.texts.index(*(*string)(unsafe.Add(row, uintptr(i)*stride))))
		}
	case Bytes:
	}
}

// bytes writes a Bytes column that starts at at.
func (e *encoder) bytes(at int, s *source, c *column) {
	blob := at + 4*(s.rows+1)
	n := 0
	for row := range s.rows {
		putU32(e.block[at+4*row:], uint32(n))
		n += copy(e.block[blob+n:], s.text(c, row))
	}
	putU32(e.block[at+4*s.rows:], uint32(n))
}

// strings appends table strings to dst, where the block started at start.
func (e *encoder) strings(dst []byte, start int) []byte {
	texts := e.texts.texts
	length := 4 * (len(texts) + 1)
	for _, t := range texts {
		length += len(t)
	}
	e.columnEntry(&schemaOf(TableStrings).columns[0], length)
	dst = slices.Grow(dst, align(length))
	n := 0
	for _, t := range texts {
		dst = appendU32(dst, uint32(n))
		n += len(t)
	}
	dst = appendU32(dst, uint32(n))
	for _, t := range texts {
		dst = append(dst, t...)
	}
	for (len(dst)-start)%8 != 0 {
		dst = append(dst, 0)
	}
	return dst
}
