package sdk

import (
	"unsafe"

	"github.com/retinue-sched/retinue/hostabi"
)

// View is what a policy is shown. What its columns mean stands at the fields of the same names in
// hostabi.DecisionRow, ProfileRow and ExecutorRow. Nothing of it may be kept beyond the call.
//
// A column that the module's manifest leaves out reads as zeros, and the call ends with an error that names it.
type View struct {
	Decision  Decision
	Profiles  Profiles
	Executors Executors

	missing string // the first column that was read and is not there
}

// Decision is the table of the call as a whole.
type Decision struct{ table }

// Profiles is the table of profiles, a row each.
type Profiles struct{ table }

// Executors is the table of executors, a row each, sorted by id.
type Executors struct{ table }

// Texts is a column of texts.
type Texts struct{ column hostabi.DictColumn }

// At returns the text of a row; "" if the column has no such row. It must not be kept beyond the call.
func (t Texts) At(row int) string {
	b := t.column.At(row)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Len returns how many rows the table has.
func (t table) Len() int { return t.columns.Rows() }

// table is a table whose missing columns are noted in the view.
type table struct {
	name    hostabi.TableID
	columns hostabi.Table
	view    *View
}

// newView returns a view that reads block.
func newView(block hostabi.Block) *View {
	v := &View{}
	read := func(id hostabi.TableID) table {
		columns, _ := block.Table(id)
		return table{id, columns, v}
	}
	v.Decision.table = read(hostabi.TableDecision)
	v.Profiles.table = read(hostabi.TableProfiles)
	v.Executors.table = read(hostabi.TableExecutors)
	return v
}

// number is what a row of a numeric column may be in Go.
type number interface {
	~uint8 | ~uint32 | ~uint64 | ~int64
}

// numbers returns a column in place. T is what the column's type is, perhaps under another name.
func numbers[T number](t table, id hostabi.ColumnID, typ hostabi.Type) []T {
	var at unsafe.Pointer
	switch typ {
	case hostabi.U8:
		at = unsafe.Pointer(unsafe.SliceData(t.columns.U8(id)))
	case hostabi.U32:
		at = unsafe.Pointer(unsafe.SliceData(t.columns.U32(id)))
	case hostabi.U64:
		at = unsafe.Pointer(unsafe.SliceData(t.columns.U64(id)))
	case hostabi.I64:
		at = unsafe.Pointer(unsafe.SliceData(t.columns.I64(id)))
	case hostabi.I32, hostabi.Bytes, hostabi.Dict:
	}
	if at == nil {
		t.note(id)
		return make([]T, t.Len())
	}
	return unsafe.Slice((*T)(at), t.Len())
}

// first returns the value of the only row.
func first[T number](t table, id hostabi.ColumnID, typ hostabi.Type) T {
	if t.Len() == 0 {
		t.note(id)
		return 0
	}
	return numbers[T](t, id, typ)[0]
}

// texts returns a column of texts.
func (t table) texts(id hostabi.ColumnID) Texts {
	c := t.columns.Dict(id)
	if len(c.Indexes) != t.Len() {
		t.note(id)
	}
	return Texts{c}
}

// bytes returns the byte string of the only row.
func (t table) bytes(id hostabi.ColumnID) []byte {
	c := t.columns.Bytes(id)
	if c.Rows() != 1 {
		t.note(id)
	}
	return c.At(0)
}

// note remembers that a column was read that is not there. Of a table without rows nothing can be missed.
func (t table) note(id hostabi.ColumnID) {
	if t.view.missing == "" && (t.Len() > 0 || t.name == hostabi.TableDecision) {
		t.view.missing = "column " + hostabi.ColumnName(t.name, id) + " of table " + t.name.String()
	}
}
