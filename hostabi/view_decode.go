package hostabi

import "unsafe"

// DecodeView reads a block back into Go values, for tests, recordings and tools. Columns that are not in it leave
// their fields zero. The result shares no memory with b. The error is a *ShapeError.
func DecodeView(b []byte) (View, error) {
	if len(b) > MaxViewSize {
		return View{}, &ShapeError{"", sentence("it has ", len(b), " bytes, more than the limit of ", MaxViewSize)}
	}
	blk, err := check(b)
	if err != nil {
		return View{}, err
	}
	v := View{Hook: blk.Hook()}
	decision := make([]DecisionRow, 1)
	if t, ok := blk.Table(TableDecision); ok {
		if t.rows != 1 {
			return View{}, &ShapeError{"table decision", sentence("it has ", t.rows, " rows, one is right")}
		}
		if err := readRows(t, decision); err != nil {
			return View{}, err
		}
	}
	v.Decision = decision[0]
	if t, ok := blk.Table(TableProfiles); ok {
		v.Profiles = make([]ProfileRow, t.rows)
		if err := readRows(t, v.Profiles); err != nil {
			return View{}, err
		}
	}
	if t, ok := blk.Table(TableExecutors); ok {
		v.Executors = make([]ExecutorRow, t.rows)
		if err := readRows(t, v.Executors); err != nil {
			return View{}, err
		}
	}
	return v, nil
}

// readRows fills rows, which are as many as the table has.
func readRows[T DecisionRow | ProfileRow | ExecutorRow](t Table, rows []T) error {
	into := rowsOf(t.id, rows)
	for i := range into.schema.columns {
		c := &into.schema.columns[i]
		found, ok := t.find(c.id)
		if !ok {
			continue
		}
		if found.typ != c.typ {
			return &ShapeError{place(t.id, c.id), "it is of " + found.typ.String() + ", " + c.typ.String() + " is right"}
		}
		for row := range rows {
			if found.has(row) {
				readValue(t, found, row, into.at(c, row))
			}
		}
	}
	return nil
}

// readValue copies one value to where it belongs.
func readValue(t Table, c entry, row int, to unsafe.Pointer) {
	switch c.typ {
	case U8:
		*(*uint8)(to) = c.data[row]
	case U32, I32:
		*(*uint32)(to) = c.u32(row)
	case U64, I64:
		*(*uint64)(to) = c.u64(row)
	case Dict:
		*(*string)(to) = string(t.block.strings.At(int(c.u32(row))))
	case Bytes:
		*(*[]byte)(to) = append([]byte(nil), bytesColumn(c, t.rows).At(row)...)
	}
}
