package hostabi

import (
	"strconv"
	"unsafe"
)

// The block form. Its header, a table's entry and a column's entry are 16 bytes each.
const (
	magic      = 0x31565452 // "RTV1"
	headerSize = 16
	entrySize  = 16
	nullable   = 1 // flag: a bitmap of the rows that have a value follows the column
)

// ShapeError says where a block breaks the contract.
type ShapeError struct {
	Where string // table, column and row as far as they are known
	What  string
}

// Error returns both in one sentence.
func (e *ShapeError) Error() string {
	if e.Where == "" {
		return "block: " + e.What
	}
	return "block: " + e.Where + ": " + e.What
}

// Block is a view or a decision in its encoded form, whose directory has been checked: every column lies
// inside the block, overlaps no other and holds what its table's rows need. It reads the bytes it was made
// from, which must not change while it is used.
type Block struct {
	b       []byte
	tables  int
	strings BytesColumn
}

// ParseBlock checks b and returns it as a Block whose columns are slices of b. If b does not start at an
// 8-byte boundary in memory, they are slices of a copy instead. A *ShapeError says what is wrong.
func ParseBlock(b []byte) (Block, error) {
	if len(b) > MaxViewSize {
		return Block{}, &ShapeError{"", sentence("it has ", len(b), " bytes, more than the limit of ", MaxViewSize)}
	}
	if !littleEndian() {
		return Block{}, &ShapeError{"", "columns cannot be read in place on a big-endian machine"}
	}
	if len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 != 0 {
		b = append(make([]byte, 0, len(b)+8), b...)
	}
	return check(b)
}

// Hook returns the question that a view asks; 0 for a decision.
func (b Block) Hook() Hook { return Hook(u32(b.b[8:])) }

// Version returns the major and minor version of the contract that the block was written with.
func (b Block) Version() (major, minor uint16) {
	return u16(b.b[4:]), u16(b.b[6:])
}

// Table returns the table with the given id, and whether there is one.
func (b Block) Table(id TableID) (Table, bool) {
	for i := range b.tables {
		if t := b.tableAt(i); t.id == id {
			return t, true
		}
	}
	return Table{}, false
}

// tableAt returns the i-th table of the block.
func (b Block) tableAt(i int) Table {
	e := b.b[headerSize+entrySize*i:]
	return Table{
		block:   b,
		id:      TableID(u16(e)),
		columns: int(u16(e[2:])),
		rows:    int(u32(e[4:])),
		first:   int(u32(e[8:])),
	}
}

// Table is one table of a Block. The zero Table has no rows and no columns.
type Table struct {
	block   Block
	id      TableID
	columns int
	rows    int
	first   int
}

// Rows returns how many rows the table has.
func (t Table) Rows() int { return t.rows }

// U8 returns a column of one-byte numbers, one a row; nil if the table has no such column of this type.
func (t Table) U8(id ColumnID) []uint8 { return column8(t, id) }

// U32 returns a column of numbers, one a row; nil if the table has no such column of this type.
func (t Table) U32(id ColumnID) []uint32 { return numbers[uint32](t, id, U32) }

// I32 returns a column of numbers, one a row; nil if the table has no such column of this type.
func (t Table) I32(id ColumnID) []int32 { return numbers[int32](t, id, I32) }

// U64 returns a column of numbers, one a row; nil if the table has no such column of this type.
func (t Table) U64(id ColumnID) []uint64 { return numbers[uint64](t, id, U64) }

// I64 returns a column of numbers, one a row; nil if the table has no such column of this type.
func (t Table) I64(id ColumnID) []int64 { return numbers[int64](t, id, I64) }

// Bytes returns a column of byte strings; empty if the table has no such column of this type.
func (t Table) Bytes(id ColumnID) BytesColumn {
	c, ok := t.find(id)
	if !ok || c.typ != Bytes {
		return BytesColumn{}
	}
	return bytesColumn(c, t.rows)
}

// Dict returns a column of texts; empty if the table has no such column of this type.
func (t Table) Dict(id ColumnID) DictColumn {
	return DictColumn{numbers[uint32](t, id, Dict), t.block.strings}
}

// Has reports whether the table has a column, and in it a value for row.
func (t Table) Has(id ColumnID, row int) bool {
	c, ok := t.find(id)
	return ok && row >= 0 && row < t.rows && c.has(row)
}

// BytesColumn is a column of byte strings. The zero value has no rows.
type BytesColumn struct {
	offsets []byte // u32 each, one more than rows
	blob    []byte
}

// Rows returns how many byte strings the column has.
func (c BytesColumn) Rows() int { return max(len(c.offsets)/4-1, 0) }

// At returns the byte string of a row, a slice of the block; nil if the column has no such row.
func (c BytesColumn) At(row int) []byte {
	if row < 0 || row >= c.Rows() {
		return nil
	}
	from, to := u32(c.offsets[4*row:]), u32(c.offsets[4*row+4:])
	return c.blob[from:to:to]
}

// DictColumn is a column of texts that are written once each. The zero value has no rows.
type DictColumn struct {
	// Indexes are equal where the texts are written once; comparing them is cheaper than comparing texts.
	Indexes []uint32
	strings BytesColumn
}

// At returns the text of a row, a slice of the block; nil if the column has no such row.
func (c DictColumn) At(row int) []byte {
	if row < 0 || row >= len(c.Indexes) {
		return nil
	}
	return c.strings.At(int(c.Indexes[row]))
}

// entry is a column as the directory describes it.
type entry struct {
	id     ColumnID
	typ    Type
	null   bool
	elem   int
	offset int
	length int
	data   []byte // length bytes
	bitmap []byte // one bit a row; nil unless null
}

// has reports whether the column has a value for row.
func (c entry) has(row int) bool {
	return !c.null || c.bitmap[row/8]&(1<<(row%8)) != 0
}

// find returns the column with the given id.
func (t *Table) find(id ColumnID) (entry, bool) {
	i := t.place(id)
	if i < 0 {
		return entry{}, false
	}
	c := t.entryAt(i)
	c.data = t.block.b[c.offset : c.offset+c.length]
	if c.null {
		at := align(c.offset + c.length)
		c.bitmap = t.block.b[at : at+bitmapSize(t.rows)]
	}
	return c, true
}

// place returns the place of a column, or -1. Columns stand in the order of their ids, so none stands further back than its id says, and in a
// table with most of its columns the search is short.
func (t *Table) place(id ColumnID) int {
	for i := min(int(id), t.columns-1); i >= 0; i-- {
		if here := ColumnID(u16(t.block.b[headerSize+entrySize*(t.block.tables+t.first+i):])); here <= id {
			if here == id {
				return i
			}
			return -1
		}
	}
	return -1
}

// entryAt returns the table's i-th column, without its bytes.
func (t *Table) entryAt(i int) entry {
	e := t.block.b[headerSize+entrySize*(t.block.tables+t.first+i):]
	return entry{
		id:     ColumnID(u16(e)),
		typ:    Type(e[2]),
		null:   e[3]&nullable != 0,
		elem:   int(u32(e[4:])),
		offset: int(u32(e[8:])),
		length: int(u32(e[12:])),
	}
}

// column8 returns a U8 column in place.
func column8(t Table, id ColumnID) []uint8 {
	c, ok := t.find(id)
	if !ok || c.typ != U8 {
		return nil
	}
	return c.data[:t.rows:t.rows]
}

// numbers returns a column in place. check has seen to it that the column is long enough and 8-byte aligned,
// and ParseBlock that the block is.
func numbers[T uint32 | int32 | uint64 | int64](t Table, id ColumnID, typ Type) []T {
	c, ok := t.find(id)
	if !ok || c.typ != typ {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(c.data))), t.rows)
}

// bytesColumn splits a checked Bytes column.
func bytesColumn(c entry, rows int) BytesColumn {
	split := 4 * (rows + 1)
	return BytesColumn{c.data[:split:split], c.data[split:]}
}

// align returns the first multiple of 8 that is not below n.
func align(n int) int { return (n + 7) &^ 7 }

// bitmapSize returns the bytes of one bit a row.
func bitmapSize(rows int) int { return (rows + 7) / 8 }

// sentence joins texts and numbers, for errors in places that fmt must not reach.
func sentence(parts ...any) string {
	var s []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			s = append(s, p...)
		case int:
			s = strconv.AppendInt(s, int64(p), 10)
		case uint64:
			s = strconv.AppendUint(s, p, 10)
		}
	}
	return string(s)
}
