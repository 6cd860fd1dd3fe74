package wasm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	. "github.com/retinue-sched/retinue/daemon/policy/wasm/wasmtest"
)

// around returns a module that has one of everything, and a function with some code.
func around(code []byte) []byte {
	return Module{
		Functions: []Function{{Export: "f", Locals: []wasm.ValueType{wasm.I32}, Code: code}},
		Table:     &wasm.Bounds{Least: 1},
		Memory:    &wasm.Bounds{Least: 1},
		Globals:   []wasm.Global{{Type: wasm.I32, Mutable: true, Init: I32(0)}},
		Elements:  []uint32{0},
		Data:      []Data{{Passive: true, Bytes: []byte("data")}},
	}.Bytes()
}

// following returns what can follow an opcode, when nothing in the module has another number than 0.
func following(op wasm.Opcode) []byte {
	switch {
	case op >= wasm.OpBlock && op <= wasm.OpIf:
		return []byte{0x40, 0x0b}
	case op == wasm.OpBrTable:
		return []byte{1, 0, 0}
	case op == 0x1c: // select with a type
		return []byte{1, wasm.I32}
	case op == wasm.OpRefNull:
		return []byte{wasm.FuncRef}
	case op == wasm.OpF32Const:
		return make([]byte, 4)
	case op == wasm.OpF64Const:
		return make([]byte, 8)
	case op == wasm.OpV128Const, op == 0xfd0d:
		return make([]byte, 16)
	case op == wasm.OpCallIndirect, wasm.Accesses(op) && op < 0xfd54 && op != 0x25 && op != wasm.OpTableSet && op>>8 != 0xfc,
		op == 0xfd5c, op == 0xfd5d, op == wasm.OpMemoryInit, op == wasm.OpMemoryCopy, op == wasm.OpTableInit, op == wasm.OpTableCopy:
		return []byte{0, 0}
	case op >= 0xfd54 && op <= 0xfd5b: // a lane of memory
		return []byte{0, 0, 0}
	case op >= 0x0c && op <= 0x0d, op == 0x10, op >= 0x20 && op <= 0x26, op >= 0x3f && op <= 0x42, op == wasm.OpRefFunc,
		op >= wasm.OpMemoryInit && op <= wasm.OpTableFill, op >= 0xfd15 && op <= 0xfd22:
		return []byte{0}
	}
	return nil
}

// Parse knows the very instructions that the engine knows, and what follows each; of those it refuses what the host cannot put back.
func TestParseKnowsTheInstructionsOfTheEngine(t *testing.T) {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer runtime.Close(ctx)
	refused := 0
	for op := range wasm.Opcode(0xfdff) + 1 {
		encoded := []byte{byte(op)}
		switch {
		case op > 0xff && op>>8 != 0xfc && op>>8 != 0xfd:
			continue
		case op > 0xff:
			encoded = append([]byte{byte(op >> 8)}, U32(int(op&0xff))...)
		case op == 0xfc, op == 0xfd:
			continue
		}
		binary := around(Code(Unreachable, encoded, following(op), Unreachable))
		_, engineErr := runtime.CompileModule(ctx, binary)
		_, err := wasm.Parse(binary, wasm.DefaultLimits())
		switch {
		case (err == nil) == (engineErr == nil):
		case err != nil && strings.Contains(err.Error(), "which the host does not put back between calls"):
			refused++
		default:
			t.Errorf("0x%x: the engine says %v, Parse says %v", uint16(op), engineErr, err)
		}
	}
	if refused != 7 {
		t.Errorf("%d instructions are refused that the engine knows, want 7", refused)
	}
}

// What later versions of WebAssembly added is refused by name.
func TestLaterInstructionsAreNamed(t *testing.T) {
	for _, test := range []struct {
		code []byte
		want string
	}{
		{Op(0xfe, 0x10, 2, 0), "uses threads"},
		{Op(0x12, 0), "uses tail calls"},
		{Op(0x13, 0, 0), "uses tail calls"},
		{Op(0x06, 0x40, 0x0b), "uses exceptions"},
		{Op(0x1f, 0x40, 0, 0x0b), "uses exceptions"},
		{Op(0xfb, 0), "garbage-collected"},
		{Op(0xfd, 0x80, 0x02), "the instruction 0xfd 0x100 is not known"},
		{Op(0xfc, 0x13), "is not known to this host"},
		{Op(0x26, 0), "table, which the host does not put back"},
		{Op(0xfc, 9, 0), "drops a segment"},
	} {
		_, err := wasm.Parse(around(Code(Unreachable, test.code)), wasm.DefaultLimits())
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "function 0 at offset 0x") {
			t.Errorf("%x: %v, want %q and where", test.code, err, test.want)
		}
	}
}

// A walk goes over every byte once.
func TestWalkMeetsEveryInstruction(t *testing.T) {
	code := Code(I32(-1), Drop, Block(Nothing, Get(0), BrTable(0, 1, 0)), Loop(GivesI32, Call(300)), Drop, F64(1.5), Drop, Op(0xfd, 0x54, 3, 0x80, 1, 9))
	var seen []string
	walk := wasm.WalkOver(code)
	for walk.Next() {
		seen = append(seen, fmt.Sprintf("%x@%d-%d", uint16(walk.Op), walk.At, walk.End()))
		switch walk.Op {
		case wasm.OpBrTable:
			seen = append(seen, fmt.Sprint(walk.Labels))
		case wasm.OpCall:
			seen = append(seen, fmt.Sprint(walk.Index))
		default:
		}
	}
	want := "41@0-2 1a@2-3 2@3-5 20@5-7 e@7-12 [0 1 0] b@12-13 3@13-15 10@15-18 300 b@18-19 1a@19-20 44@20-29 1a@29-30 fd54@30-36"
	if got := strings.Join(seen, " "); got != want || walk.Err() != nil {
		t.Errorf("met\n%s, %v, want\n%s", got, walk.Err(), want)
	}
}
