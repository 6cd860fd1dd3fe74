package wasm

import "fmt"

// references are one more than the highest indices that constant expressions name.
type references struct {
	functions, globals uint64
}

// expression takes a constant expression off a reader.
func (r *reader) expression(refs *references) Expression {
	w := WalkOver(r.b[r.at:])
	for w.Next() {
		switch w.Op {
		case OpEnd:
			return r.bytes(uint32(w.End()))
		case OpI32Const, OpI64Const, OpF32Const, OpF64Const, OpV128Const, OpRefNull:
		case OpRefFunc:
			refs.functions = max(refs.functions, uint64(w.Index)+1)
		case OpGlobalGet:
			refs.globals = max(refs.globals, uint64(w.Index)+1)
		default:
			r.fail(fmt.Errorf("the instruction 0x%x is not allowed in a constant", uint16(w.Op)))
			return nil
		}
	}
	if w.Err() != nil {
		r.fail(w.Err())
	}
	r.fail(errTruncated)
	return nil
}
