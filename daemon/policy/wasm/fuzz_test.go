package wasm_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// Whatever the bytes, Parse ends with a module or a sentence, and takes memory in proportion to them.
func FuzzParse(f *testing.F) {
	f.Add(around(Code(I32(1), Drop)))
	f.Add(around(Code(Block(Nothing, Get(0), BrTable(0, 1, 0)))))
	f.Add(Module{Custom: []wasm.Custom{{Name: "name", Content: []byte{1, 4, 1, 0, 1, 'f'}}}}.Bytes())
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f"))
	limits := wasm.DefaultLimits()
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := wasm.Parse(b, limits)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 200*uint64(len(b))+1<<20 { // others in the process may take some, too
			t.Errorf("%d bytes take %d bytes of memory", len(b), took)
		}
		switch {
		case err == nil && m == nil, err != nil && strings.TrimSpace(err.Error()) == "":
			t.Errorf("module %v, error %v", m, err)
		case err != nil && (strings.ContainsAny(err.Error(), "\n\r\x1b") || len(err.Error()) > 1_000):
			t.Errorf("the sentence is no line: %q", err)
		}
	})
}
