package hostabi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/hostabi"
)

// Any bytes may be a decision: decoding never panics and never breaks a limit.
func FuzzDecodeDecision(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.bytes)
		if v.refusal == "" {
			f.Add(grease(f, v.bytes))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkAnyDecision(t, b) })
}

// Any bytes may be a block: what parses can be read to the last value, and a view that decodes comes back.
func FuzzParseBlock(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		block, err := hostabi.ParseBlock(b)
		if err != nil {
			return
		}
		readEverything(block)
		v, err := hostabi.DecodeView(b)
		if err != nil {
			return
		}
		again, err := hostabi.DecodeView(v.Encode(nil, hostabi.Projection{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again, sameView); diff != "" {
			t.Fatalf("it came back changed (-want +got):\n%s", diff)
		}
	})
}

// Any bytes may be a module: reading its manifest never panics.
func FuzzReadManifest(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	module, err := hostabi.AppendManifest([]byte("\x00asm\x01\x00\x00\x00"), goodManifest())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(module)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := hostabi.ReadManifest(b)
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatalf("a manifest was read that is not valid: %v", err)
		}
	})
}

// readEverything reads each column of each known table as each type.
func readEverything(b hostabi.Block) (sum uint64) {
	for _, id := range []hostabi.TableID{0, 1, 2, 3, 16, 17, 18} {
		t, _ := b.Table(id)
		for c := range hostabi.ColumnID(40) {
			for i, v := range t.U64(c) {
				sum += v + uint64(i)
			}
			for _, v := range t.I64(c) {
				sum += uint64(v)
			}
			for _, v := range t.U32(c) {
				sum += uint64(v)
			}
			for _, v := range t.I32(c) {
				sum += uint64(v)
			}
			for _, v := range t.U8(c) {
				sum += uint64(v)
			}
			texts, strings := t.Dict(c), t.Bytes(c)
			for row := range min(t.Rows(), 1000) + 1 {
				sum += uint64(len(texts.At(row)) + len(strings.At(row)))
				if t.Has(c, row) {
					sum++
				}
			}
		}
	}
	return sum
}
