package hostabi_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/retinue-sched/retinue/hostabi"
)

// sameView compares what a view shows, not the memory that it keeps.
var sameView = cmp.Options{cmpopts.IgnoreUnexported(hostabi.View{}), cmpopts.EquateEmpty()}

// A decision says the same after its way through bytes, and so does a greased one.
func TestDecisionComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawDecision(t)
		b := hostabi.EncodeDecision(nil, want)
		for _, form := range [][]byte{b, grease(t, b)} {
			got, err := hostabi.DecodeDecision(form)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("it came back changed (-want +got):\n%s", diff)
			}
		}
	})
}

// A view shows the same after its way through bytes, and so does a greased one.
func TestViewComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawView(t)
		b := want.Encode(nil, hostabi.Projection{})
		for _, form := range [][]byte{b, grease(t, b)} {
			got, err := hostabi.DecodeView(form)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, sameView); diff != "" {
				t.Fatalf("it came back changed (-want +got):\n%s", diff)
			}
		}
	})
}

// A view encodes to the same bytes whatever was encoded with its memory before, whatever is in the buffer, and
// whether its texts share their bytes or not.
func TestEncodingDependsOnTheViewAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used, v := drawView(t), drawView(t)
		want := v.Encode(nil, hostabi.Projection{})

		used.Encode(nil, hostabi.Projection{})
		used.Hook, used.Decision, used.Profiles, used.Executors = v.Hook, v.Decision, v.Profiles, append([]hostabi.ExecutorRow(nil), v.Executors...)
		for i := range used.Executors {
			used.Executors[i].Node = string(append([]byte(nil), used.Executors[i].Node...))
		}
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "prefix")
		dirty := append(append([]byte(nil), prefix...), bytes.Repeat([]byte{0xff}, 2*len(want))...)
		got := used.Encode(dirty[:len(prefix)], hostabi.Projection{})
		if !bytes.Equal(got[:len(prefix)], prefix) || !bytes.Equal(got[len(prefix):], want) {
			t.Fatal("the bytes differ")
		}
	})
}

// What a block gives in place is what its values were, also when the block is not aligned in memory.
func TestColumnsInPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		offset := rapid.IntRange(0, 8).Draw(t, "offset")
		b := v.Encode(make([]byte, offset), hostabi.Projection{})[offset:]
		block, err := hostabi.ParseBlock(b)
		if err != nil {
			t.Fatal(err)
		}
		executors, ok := block.Table(hostabi.TableExecutors)
		if !ok || executors.Rows() != len(v.Executors) {
			t.Fatalf("the table of executors has %d rows, want %d", executors.Rows(), len(v.Executors))
		}
		ids, flags, phases := executors.U64(hostabi.ExecutorsID), executors.U32(hostabi.ExecutorsFlags), executors.U8(hostabi.ExecutorsPhase)
		idle, nodes := executors.I64(hostabi.ExecutorsIdleSinceMS), executors.Dict(hostabi.ExecutorsNode)
		if len(ids) > 0 && uintptr(unsafe.Pointer(&ids[0]))%8 != 0 {
			t.Fatal("the column of ids is not aligned in memory")
		}
		for i, e := range v.Executors {
			if ids[i] != e.ID || flags[i] != uint32(e.Flags) || phases[i] != uint8(e.Phase) || idle[i] != e.IdleSinceMS || string(nodes.At(i)) != e.Node {
				t.Fatalf("row %d differs from %+v", i, e)
			}
		}
		if executors.U32(hostabi.ExecutorsID) != nil || executors.U64(999) != nil || executors.Dict(hostabi.ExecutorsID).At(0) != nil {
			t.Fatal("a column of another type, or none, gave values")
		}
	})
}

// A projection leaves out what it does not name and changes nothing else.
func TestProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawView(t)
		p := hostabi.Projection{}.With(hostabi.TableExecutors, hostabi.ExecutorsID, hostabi.ExecutorsZone).With(hostabi.TableProfiles)
		got, err := hostabi.DecodeView(v.Encode(nil, p))
		if err != nil {
			t.Fatal(err)
		}
		want := hostabi.View{Hook: v.Hook, Decision: v.Decision, Profiles: make([]hostabi.ProfileRow, len(v.Profiles))}
		for _, e := range v.Executors {
			want.Executors = append(want.Executors, hostabi.ExecutorRow{ID: e.ID, Zone: e.Zone})
		}
		if diff := cmp.Diff(want, got, sameView); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// Whatever happens to the bytes of a decision, decoding says an error or gives a decision that keeps the limits.
func TestDamagedDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hostabi.EncodeDecision(nil, drawDecision(t))
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "cut")]
		checkAnyDecision(t, b)
	})
}

// checkAnyDecision decodes b and, if that works, checks the limits and that it comes back.
func checkAnyDecision(t interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, b []byte,
) {
	t.Helper()
	d, err := hostabi.DecodeDecision(b)
	if err != nil {
		var shape *hostabi.ShapeError
		if !errors.As(err, &shape) || shape.What == "" {
			t.Fatalf("the error is %#v, want a ShapeError", err)
		}
		return
	}
	if len(d.State) > hostabi.MaxStateSize || len(d.Note) > hostabi.MaxNoteSize || d.NextCallMS < 0 {
		t.Fatalf("it breaks a limit: %+v", d)
	}
	for _, r := range d.Releases {
		if r.Mode < hostabi.Cancel || r.Mode > hostabi.Kill {
			t.Fatalf("release mode %d", r.Mode)
		}
	}
	again, err := hostabi.DecodeDecision(hostabi.EncodeDecision(nil, d))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Fatalf("it came back changed (-want +got):\n%s", diff)
	}
}

// grease returns b with things in it that no reader knows.
func grease(t interface {
	Helper()
	Fatal(args ...any)
}, b []byte,
) []byte {
	t.Helper()
	block, err := hostabi.ParseBlock(b)
	if err != nil {
		t.Fatal(err)
	}
	greased := hostabi.Grease(block)
	if len(greased) <= len(b) {
		t.Fatal("nothing was added")
	}
	return greased
}
