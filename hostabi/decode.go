package hostabi

import (
	"unicode/utf8"
)

// DecodeDecision reads what a module answered. Everything is checked before it is copied: the result shares no
// memory with b, and takes at most a few times MaxDecisionSize. The error is a *ShapeError that names table,
// column and row.
func DecodeDecision(b []byte) (Decision, error) {
	if len(b) > MaxDecisionSize {
		return Decision{}, &ShapeError{"", sentence("it has ", len(b), " bytes, more than the limit of ", MaxDecisionSize)}
	}
	blk, err := check(b)
	if err != nil {
		return Decision{}, err
	}
	if h := blk.Hook(); h != 0 {
		return Decision{}, &ShapeError{"", "its hook is " + h.String() + ", that of an answer is 0"}
	}
	r := reader{texts: make([]string, blk.strings.Rows())}
	d := Decision{Creates: r.creates(blk), Releases: r.releases(blk)}
	r.result(blk, &d)
	if r.err != nil {
		return Decision{}, r.err
	}
	return d, nil
}

// reader reads the tables of a decision and keeps the first thing that is wrong.
type reader struct {
	err   error
	texts []string // table strings, as far as copied
	table Table
}

// creates reads table create.
func (r *reader) creates(blk Block) []Create {
	rows := r.open(blk, TableCreate)
	profile, count := r.column(CreateProfile, U32), r.column(CreateCount, U32)
	zone, capacity := r.hint(CreateZone), r.hint(CreateCapacityType)
	node, reason := r.hint(CreateNode), r.hint(CreateReason)
	if r.err != nil || rows == 0 {
		return nil
	}
	list := make([]Create, 0, rows)
	for row := range rows {
		list = append(list, Create{
			Profile: profile.u32(row), Count: count.u32(row),
			Zone: r.text(zone, row), CapacityType: r.text(capacity, row),
			Node: r.text(node, row), Reason: r.text(reason, row),
		})
	}
	return list
}

// releases reads table release.
func (r *reader) releases(blk Block) []Release {
	rows := r.open(blk, TableRelease)
	executor, mode, reason := r.column(ReleaseExecutor, U64), r.column(ReleaseModeColumn, U8), r.hint(ReleaseReason)
	if r.err != nil || rows == 0 {
		return nil
	}
	list := make([]Release, 0, rows)
	for row := range rows {
		m := ReleaseMode(mode.data[row])
		if m < Cancel || m > Kill {
			r.fail(ReleaseModeColumn, row, m.String()+": there are 1 cancel, 2 drain and 3 kill")
		}
		list = append(list, Release{executor.u64(row), m, r.text(reason, row)})
	}
	return list
}

// result reads table result. Each of its columns may be missing.
func (r *reader) result(blk Block, d *Decision) {
	rows := r.open(blk, TableResult)
	if r.err != nil || rows == 0 {
		return
	}
	if rows != 1 {
		r.err = &ShapeError{"table result", sentence("it has ", rows, " rows, one is right")}
		return
	}
	if c, ok := r.optional(ResultNextCallMS, I64); ok && c.has(0) {
		d.NextCallMS = int64(c.u64(0))
	}
	if d.NextCallMS < 0 {
		r.fail(ResultNextCallMS, 0, sentence("it is -", uint64(-d.NextCallMS), ", a time ahead or 0 is right"))
	}
	if c, ok := r.optional(ResultStateVersion, U32); ok && c.has(0) {
		d.StateVersion = c.u32(0)
	}
	d.State = append(d.State, r.bytes(ResultState, MaxStateSize)...)
	note := r.bytes(ResultNote, MaxNoteSize)
	if !utf8.Valid(note) {
		r.fail(ResultNote, 0, "it is not UTF-8")
	}
	d.Note = string(note)
}

// open makes a table the current one and returns its rows; 0 if the decision has none of it.
func (r *reader) open(blk Block, id TableID) int {
	t, ok := blk.Table(id)
	r.table = t
	if !ok {
		r.table = Table{id: id}
	}
	return r.table.rows
}

// column returns a column that a table with rows must have, with a value in each row.
func (r *reader) column(id ColumnID, typ Type) entry {
	if r.table.rows == 0 {
		return entry{}
	}
	c, ok := r.optional(id, typ)
	if !ok {
		r.fail(id, -1, "it is missing")
		return entry{}
	}
	for row := 0; c.null && row < r.table.rows; row++ {
		if !c.has(row) {
			r.fail(id, row, "it has no value")
			break
		}
	}
	return c
}

// hint returns a Dict column that may be missing.
func (r *reader) hint(id ColumnID) entry {
	c, _ := r.optional(id, Dict)
	c.id = id
	return c
}

// optional returns a column of the current table and whether there is one; another type than typ is wrong.
func (r *reader) optional(id ColumnID, typ Type) (entry, bool) {
	c, ok := r.table.find(id)
	if ok && c.typ != typ {
		r.fail(id, -1, "it is of "+c.typ.String()+", "+typ.String()+" is right")
		return entry{}, false
	}
	return c, ok
}

// text returns the text of a Dict column in a row, each text copied once.
func (r *reader) text(c entry, row int) string {
	if c.data == nil || !c.has(row) {
		return ""
	}
	i := c.u32(row)
	if r.texts[i] == "" {
		r.texts[i] = r.copied(c.id, row, r.table.block.strings.At(int(i)))
	}
	return r.texts[i]
}

// copied returns b as a string if it is text within the limit.
func (r *reader) copied(id ColumnID, row int, b []byte) string {
	if len(b) > MaxTextSize {
		r.fail(id, row, sentence("it has ", len(b), " bytes, more than the limit of ", MaxTextSize))
		return ""
	}
	if !utf8.Valid(b) {
		r.fail(id, row, "it is not UTF-8")
		return ""
	}
	return string(b)
}

// bytes returns the value of a Bytes column in the only row, a slice of the block; nil if there is none.
func (r *reader) bytes(id ColumnID, limit int) []byte {
	c, ok := r.optional(id, Bytes)
	if !ok || !c.has(0) {
		return nil
	}
	b := bytesColumn(c, 1).At(0)
	if len(b) > limit {
		r.fail(id, 0, sentence("it has ", len(b), " bytes, more than the limit of ", limit))
		return nil
	}
	return b
}

// fail keeps what is wrong, unless something was before; a row below 0 means the whole column.
func (r *reader) fail(id ColumnID, row int, what string) {
	if r.err != nil {
		return
	}
	where := place(r.table.id, id)
	if row >= 0 {
		where = placeRow(r.table.id, id, row)
	}
	r.err = &ShapeError{where, what}
}

// u32 returns a four-byte value.
func (c entry) u32(row int) uint32 { return u32(c.data[4*row:]) }

// u64 returns an eight-byte value.
func (c entry) u64(row int) uint64 { return u64(c.data[8*row:]) }
