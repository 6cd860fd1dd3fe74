package hostabi_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// Where things stand in the golden decision; its annotated bytes show the same.
const (
	tablesAt  = 16
	createAt  = tablesAt
	releaseAt = tablesAt + 16
	resultAt  = tablesAt + 32
	columnsAt = tablesAt + 4*16
)

// entryAt returns where the n-th entry of the directory stands.
func entryAt(n int) int { return columnsAt + 16*n }

// set returns a change that writes a little-endian number of size bytes at at.
func set(at, size int, value uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		var le [8]byte
		binary.LittleEndian.PutUint64(le[:], value)
		copy(b[at:at+size], le[:])
		return b
	}
}

// valueAt returns where the values of the n-th column of the golden decision start.
func valueAt(n int) int {
	b := hostabi.EncodeDecision(nil, goldenDecision())
	return int(binary.LittleEndian.Uint32(b[entryAt(n)+8:]))
}

// refusals are changes to the golden decision, each with what is said about it.
func refusals() []struct {
	name, want string
	change     func([]byte) []byte
} {
	return []struct {
		name, want string
		change     func([]byte) []byte
	}{
		{"short", "it has 15 bytes, a header takes 16", func(b []byte) []byte { return b[:15] }},
		{"magic", "does not start with RTV1", set(0, 4, 0)},
		{"major", "its major version is 2, this side speaks 1", set(4, 2, 2)},
		{"hook", "its hook is release, that of an answer is 0", set(8, 4, 2)},
		{"tables", "it has 33 tables, more than the limit of 32", set(12, 4, 33)},
		{"tables-cut", "ends inside the entries of its 4 tables", func(b []byte) []byte { return b[:70] }},
		{"columns", "it has 607 columns, more than the limit of 512", set(createAt+2, 2, 599)},
		{"columns-cut", "ends inside the entries of its 14 columns", func(b []byte) []byte { return b[:90] }},
		{"table-twice", "table create: it is there twice", set(releaseAt, 2, 16)},
		{"table-first", "table release: its columns start at entry 5 of the directory, the tables before it end at 6", set(releaseAt+8, 4, 5)},
		{"rows", "table create: it has 4294967295 rows, more than the limit of 1048576", set(createAt+4, 4, 1<<32-1)},
		{"column-order", "columns must stand in the order of their ids", set(entryAt(1), 2, 1)},
		{"offset", "table create, column count: it starts at 313, not a multiple of 8", set(entryAt(1)+8, 4, 313)},
		{"overlap", "table create, column count: it starts at 304, inside what ends at 312", set(entryAt(1)+8, 4, 304)},
		{"behind-the-end", "end behind the block's", set(entryAt(1)+8, 4, 1<<31)},
		{"longer-than-the-block", "table result, column note: its 1048576 bytes at 416 end behind the block's", set(entryAt(12)+12, 4, 1<<20)},
		{"element-size", "its element size is 8, that of u32 is 4", set(entryAt(1)+4, 4, 8)},
		{"length", "table create, column count: it has 12 bytes, its 2 rows take 8", set(entryAt(1)+12, 4, 12)},
		{"bytes-length", "the offsets of its 1 rows take 8", set(entryAt(11)+12, 4, 7)},
		{"bytes-offsets", "table result, column note: row 1: its offset 99 is outside 0 to 9", set(valueAt(12)+4, 4, 99)},
		{"bytes-offsets-back", "table strings, column text: row 3: its offset 1 is outside 2 to 35", set(valueAt(13)+4*3, 4, 1)},
		{"text-index", "table create, column zone, row 1: its text is not among the 6 of table strings", set(valueAt(2)+4, 4, 6)},
		{"strings-null", "table strings: it must have one column: text, of type bytes, without null", set(entryAt(13)+3, 1, 1)},
		{"null-overlap", "table result, column note: it starts at 416, inside what ends at 417", set(entryAt(11)+3, 1, 1)},
		{"type", "table create, column count: it is of i32, u32 is right", set(entryAt(1)+2, 1, 3)},
		{"result-type", "table result, column next_call_ms: it is of u64, i64 is right", set(entryAt(9)+2, 1, 4)},
		{"release-mode", "table release, column mode, row 1: release mode 9: there are 1 cancel, 2 drain and 3 kill", set(valueAt(7)+1, 1, 9)},
		{"next-call", "table result, column next_call_ms, row 0: it is -1, a time ahead or 0 is right", set(valueAt(9), 8, 1<<64-1)},
		{"note-text", "table result, column note, row 0: it is not UTF-8", set(valueAt(12)+8, 1, 0xff)},
		{"reason-text", "table create, column reason, row 0: it is not UTF-8", set(valueAt(13)+4*7+8, 1, 0xff)},
	}
}

// Each fault of a decision is refused with its own sentence, which says where it is.
func TestRefusals(t *testing.T) {
	if *update {
		for _, r := range refusals() {
			writeRefusal(t, r.name, r.want, r.change(hostabi.EncodeDecision(nil, goldenDecision())))
		}
	}
	files := make(map[string]vector)
	for _, v := range vectors(t) {
		files[v.name] = v
	}
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			v := files["refused-"+r.name]
			if changed := r.change(hostabi.EncodeDecision(nil, goldenDecision())); !bytes.Equal(v.bytes, changed) {
				t.Fatal("the golden vector is another one; -update writes it")
			}
			if _, err := hostabi.DecodeDecision(v.bytes); err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("the error is %v, want one with %q", err, r.want)
			}
			if v.refusal != r.want {
				t.Errorf("the golden vector says %q, want %q", v.refusal, r.want)
			}
		})
	}
}

// Texts, state and the whole are refused beyond their limits, and taken at them.
func TestDecisionLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int) hostabi.Decision { return hostabi.Decision{Releases: make([]hostabi.Release, n)} }
	for _, c := range []struct {
		name string
		d    hostabi.Decision
		want string // "" for taken
	}{
		{"note at the limit", hostabi.Decision{Note: long(hostabi.MaxNoteSize)}, ""},
		{"note beyond", hostabi.Decision{Note: long(hostabi.MaxNoteSize + 1)}, "column note, row 0: it has 1025 bytes"},
		{"state at the limit", hostabi.Decision{State: make([]byte, hostabi.MaxStateSize)}, ""},
		{"state beyond", hostabi.Decision{State: make([]byte, hostabi.MaxStateSize+1)}, "column state, row 0: it has 65537 bytes"},
		{"zone beyond", hostabi.Decision{Creates: []hostabi.Create{{Zone: long(hostabi.MaxTextSize + 1)}}}, "table create, column zone, row 0: it has 1025 bytes"},
		{"too big", many(hostabi.MaxDecisionSize / 8), "bytes, more than the limit of 262144"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := hostabi.DecodeDecision(hostabi.EncodeDecision(nil, c.d))
			if c.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// A number that must be there is refused when its column is missing or says that a row has no value; a hint without
// one is empty.
func TestMissingValues(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want string // "" for taken
	}{
		{"no count", createBlock(false, false, 0b11), "table create, column count: it is missing"},
		{"all counts", createBlock(true, true, 0b11), ""},
		{"no room for the bitmap", cutLast(createBlock(true, true, 0b11)), "its null bitmap ends at 81, behind the block's 80"},
		{"one count", createBlock(true, true, 0b01), "table create, column count, row 1: it has no value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := hostabi.DecodeDecision(c.b)
			if c.want == "" && (err != nil || len(d.Creates) != 2 || d.Creates[1].Count != 7) {
				t.Errorf("got %+v, %v", d, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func cutLast(b []byte) []byte { return b[:len(b)-1] }

// createBlock returns a decision by hand: two rows of create with profiles 0 and 0 and, perhaps, counts 7, perhaps
// with a bitmap of the rows that have one.
func createBlock(count, nullable bool, bitmap byte) []byte {
	columns := 1
	if count {
		columns = 2
	}
	u16, u32 := binary.LittleEndian.AppendUint16, binary.LittleEndian.AppendUint32
	b := append([]byte("RTV1"), 1, 0, 0, 0)
	b = u32(u32(b, 0), 1)
	b = u32(u32(u32(u16(u16(b, 16), uint16(columns)), 2), 0), 0)
	at := uint32(32 + 16*columns)
	b = append(u16(b, 1), 2, 0)
	b = u32(u32(u32(b, 4), at), 8)
	if !count {
		return append(b, make([]byte, 8)...)
	}
	b = append(u16(b, 2), 2, 0)
	if nullable {
		b[len(b)-1] = 1
	}
	b = u32(u32(u32(b, 4), at+8), 8)
	b = append(b, make([]byte, 8)...)
	return append(u32(u32(b, 7), 7), bitmap)
}

func writeRefusal(t *testing.T, name, want string, b []byte) {
	t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, "refused: %s\n", want)
	dump(&out, b, "the golden decision, changed")
	if err := os.WriteFile("testdata/refused-"+name+".hex", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
