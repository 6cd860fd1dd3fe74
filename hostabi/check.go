package hostabi

// check returns b as a Block if its header, its directory and the offsets and indexes in its columns are sound.
// It reads each byte a bounded number of times and allocates nothing.
func check(b []byte) (Block, error) {
	blk, columns, err := checkHeader(b)
	if err != nil {
		return Block{}, err
	}
	// Columns stand in the order of the directory, so that one running end shows that none overlaps.
	end, first := headerSize+entrySize*(blk.tables+columns), 0
	for i := range blk.tables {
		t := blk.tableAt(i)
		if err = checkTable(blk, t, i, first); err != nil {
			return Block{}, err
		}
		if end, err = checkColumns(t, end); err != nil {
			return Block{}, err
		}
		first += t.columns
	}
	if s, ok := blk.Table(TableStrings); ok {
		blk.strings = s.Bytes(StringsText)
	}
	return blk, checkDicts(blk)
}

// checkHeader checks what stands before the columns' entries and returns how many of those there are.
func checkHeader(b []byte) (Block, int, error) {
	if len(b) < headerSize {
		return Block{}, 0, &ShapeError{"", sentence("it has ", len(b), " bytes, a header takes ", headerSize)}
	}
	if m := u32(b); m != magic {
		return Block{}, 0, &ShapeError{"", "it does not start with RTV1"}
	}
	if major := u16(b[4:]); major != ABIMajor {
		return Block{}, 0, &ShapeError{"", sentence("its major version is ", int(major), ", this side speaks ", ABIMajor)}
	}
	tables := int(u32(b[12:]))
	if tables > MaxTables {
		return Block{}, 0, &ShapeError{"", sentence("it has ", tables, " tables, more than the limit of ", MaxTables)}
	}
	if len(b) < headerSize+entrySize*tables {
		return Block{}, 0, &ShapeError{"", sentence("it ends inside the entries of its ", tables, " tables")}
	}
	blk, columns := Block{b: b, tables: tables}, 0
	for i := range tables {
		columns += blk.tableAt(i).columns
	}
	if columns > MaxColumns {
		return Block{}, 0, &ShapeError{"", sentence("it has ", columns, " columns, more than the limit of ", MaxColumns)}
	}
	if len(b) < headerSize+entrySize*(tables+columns) {
		return Block{}, 0, &ShapeError{"", sentence("it ends inside the entries of its ", columns, " columns")}
	}
	return blk, columns, nil
}

// checkTable checks the i-th table's own entry; first is where its columns must start in the directory.
func checkTable(blk Block, t Table, i, first int) error {
	for j := range i {
		if blk.tableAt(j).id == t.id {
			return &ShapeError{"table " + t.id.String(), "it is there twice"}
		}
	}
	if t.rows > MaxRows {
		return &ShapeError{"table " + t.id.String(), sentence("it has ", t.rows, " rows, more than the limit of ", MaxRows)}
	}
	if t.first != first {
		return &ShapeError{"table " + t.id.String(), sentence("its columns start at entry ", t.first,
			" of the directory, the tables before it end at ", first)}
	}
	if t.id == TableStrings && (t.columns != 1 || t.entryAt(0).id != StringsText || t.entryAt(0).typ != Bytes || t.entryAt(0).null) {
		return &ShapeError{"table strings", "it must have one column: text, of type bytes, without null"}
	}
	return nil
}

// checkColumns checks the entries of a table's columns and returns where the last of them ends.
func checkColumns(t Table, end int) (int, error) {
	previous := -1
	for i := range t.columns {
		c := t.entryAt(i)
		next, what := checkColumn(t, c, end)
		if int(c.id) <= previous {
			what = "columns must stand in the order of their ids, each once"
		}
		if what != "" {
			return 0, &ShapeError{place(t.id, c.id), what}
		}
		end, previous = next, int(c.id)
	}
	return end, nil
}

// checkColumn checks one column and returns where it ends, or what is wrong. Columns of unknown type are
// skipped, so for them only the place is checked.
func checkColumn(t Table, c entry, end int) (next int, what string) {
	size, total := c.typ.size(), len(t.block.b)
	switch {
	case c.offset%8 != 0:
		return 0, sentence("it starts at ", c.offset, ", not a multiple of 8")
	case c.offset < end:
		return 0, sentence("it starts at ", c.offset, ", inside what ends at ", end)
	case c.offset > total || c.length > total-c.offset:
		return 0, sentence("its ", c.length, " bytes at ", c.offset, " end behind the block's ", total)
	case size != 0 && c.elem != size:
		return 0, sentence("its element size is ", c.elem, ", that of ", c.typ.String(), " is ", size)
	case size != 0 && c.typ != Bytes && c.length != size*t.rows:
		return 0, sentence("it has ", c.length, " bytes, its ", t.rows, " rows take ", size*t.rows)
	case c.typ == Bytes && c.length < size*(t.rows+1):
		return 0, sentence("it has ", c.length, " bytes, the offsets of its ", t.rows, " rows take ", size*(t.rows+1))
	}
	next = c.offset + c.length
	if c.typ == Bytes {
		if what = checkOffsets(t.block.b[c.offset:next], t.rows); what != "" {
			return 0, what
		}
	}
	if c.null {
		if next = align(next) + bitmapSize(t.rows); next > total {
			return 0, sentence("its null bitmap ends at ", next, ", behind the block's ", total)
		}
	}
	return next, ""
}

// checkOffsets returns what is wrong with the offsets of a Bytes column.
func checkOffsets(data []byte, rows int) string {
	blob, previous := len(data)-4*(rows+1), 0
	for row := range rows + 1 {
		at := int(u32(data[4*row:]))
		if at < previous || at > blob || row == 0 && at != 0 {
			return sentence("row ", row, ": its offset ", at, " is outside ", previous, " to ", blob)
		}
		previous = at
	}
	return ""
}

// checkDicts checks that every index of every dict column is a row of table strings.
func checkDicts(blk Block) error {
	for i := range blk.tables {
		t := blk.tableAt(i)
		for j := range t.columns {
			c := t.entryAt(j)
			if c.typ != Dict {
				continue
			}
			if row, ok := checkIndexes(blk.b[c.offset:c.offset+c.length], blk.strings.Rows()); !ok {
				return &ShapeError{placeRow(t.id, c.id, row), sentence("its text is not among the ", blk.strings.Rows(), " of table strings")}
			}
		}
	}
	return nil
}

// checkIndexes returns the first row whose index is not below limit, and whether there is none.
func checkIndexes(data []byte, limit int) (row int, ok bool) {
	for row = 0; 4*row+4 <= len(data); row++ {
		if int(u32(data[4*row:])) >= limit {
			return row, false
		}
	}
	return 0, true
}

// place names a column for an error.
func place(t TableID, c ColumnID) string {
	return sentence("table ", t.String(), ", column ", ColumnName(t, c))
}

// placeRow names a value for an error.
func placeRow(t TableID, c ColumnID, row int) string {
	return sentence(place(t, c), ", row ", row)
}
