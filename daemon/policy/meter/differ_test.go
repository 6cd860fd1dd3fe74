package meter

import (
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

var seed = maphash.MakeSeed()

func hash(b []byte) uint64 { return maphash.Bytes(seed, b) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// twins are a plain module and its metered form, each on both engines.
type twins struct {
	plain, metered [2]*instance
}

var engines = [2]func() wazero.RuntimeConfig{compiler, interpreter}

func newTwins(t testing.TB, binary []byte) *twins {
	t.Helper()
	metered := rewrite(t, binary)
	tw := &twins{}
	for i, config := range engines {
		tw.plain[i] = newEngine(t, config()).instantiate(t, binary, nil)
		tw.metered[i] = newEngine(t, config()).instantiate(t, metered.Wasm, metered)
	}
	return tw
}

// agree makes the same calls, one after the other, of all four, and once more of fresh ones: everything must be the same but the ticks,
// which the plain ones do not count.
func agree(t testing.TB, binary []byte, calls ...call) []outcome {
	t.Helper()
	var first []outcome
	for range 2 {
		tw := newTwins(t, binary)
		var all []outcome
		for _, c := range calls {
			want := tw.plain[0].do(c)
			if other := tw.plain[1].do(c); cmp.Diff(want, other) != "" {
				t.Fatalf("%s%v: the engines differ by themselves:\n%s", c.name, c.args, cmp.Diff(want, other))
			}
			got, other := tw.metered[0].do(c), tw.metered[1].do(c)
			if diff := cmp.Diff(got, other); diff != "" {
				t.Errorf("%s%v: the engines differ (-compiler +interpreter):\n%s", c.name, c.args, diff)
			}
			all = append(all, got)
			got.Ticks = 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s%v: metering makes a difference (-plain +metered):\n%s", c.name, c.args, diff)
			}
			tw.compareGlobals(t, c)
		}
		if first != nil && cmp.Diff(first, all) != "" {
			t.Errorf("the second time differs:\n%s", cmp.Diff(first, all))
		}
		first = all
	}
	return first
}

// compareGlobals compares what the metered ones export for the image, and wants the depth to be given back.
func (tw *twins) compareGlobals(t testing.TB, c call) {
	t.Helper()
	var values [2][]uint64
	for i, m := range tw.metered {
		for _, g := range m.metered.Globals {
			values[i] = append(values[i], m.ExportedGlobal(g.Name).Get())
		}
		if depth := api.DecodeU32(m.ExportedGlobal(m.metered.Depth).Get()); depth != DefaultConfig().CallDepth {
			t.Errorf("%s%v: the depth is %d, want %d", c.name, c.args, depth, DefaultConfig().CallDepth)
		}
	}
	if !slices.Equal(values[0], values[1]) {
		t.Errorf("%s%v: the globals differ: %v and %v", c.name, c.args, values[0], values[1])
	}
}
