package meter

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// What Parse lets through can be metered, and the engine takes the metered form if and only if it takes the plain one.
func FuzzRewrite(f *testing.F) {
	for _, s := range everything() {
		f.Add(s.module.Bytes())
	}
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, interpreter().WithCoreFeatures(api.CoreFeaturesV2))
	f.Cleanup(func() { runtime.Close(ctx) })
	limits := wasm.DefaultLimits()
	limits.Size, limits.FunctionMoves = 64<<10, 10_000 // so that each takes little time
	f.Fuzz(func(t *testing.T, plain []byte) {
		m, err := wasm.Parse(plain, limits)
		if err != nil {
			return
		}
		cfg := DefaultConfig()
		metered, err := Rewrite(m, cfg)
		if err != nil {
			t.Fatalf("it cannot be metered: %v", err)
		}
		plainErr, meteredErr := compile(ctx, runtime, withoutCustom(t, plain)), compile(ctx, runtime, metered.Wasm)
		if (plainErr == nil) != (meteredErr == nil) {
			t.Errorf("the engine says of the plain module: %v; of the metered one: %v", plainErr, meteredErr)
		}
		again, err := Rewrite(m, cfg)
		if err != nil || string(again.Wasm) != string(metered.Wasm) {
			t.Errorf("the second time the metered form is another (%v)", err)
		}
	})
}

func compile(ctx context.Context, runtime wazero.Runtime, binary []byte) error {
	code, err := runtime.CompileModule(ctx, binary)
	if err != nil {
		return err
	}
	return code.Close(ctx)
}

// withoutCustom leaves out the custom sections, which the engine reads more strictly than anybody has to.
func withoutCustom(t *testing.T, module []byte) []byte {
	t.Helper()
	out, rest := module[:8:8], module[8:]
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		section := rest[:1+n+int(size)]
		rest = rest[len(section):]
		if section[0] != 0 {
			out = append(out, section...)
		}
	}
	return out
}
