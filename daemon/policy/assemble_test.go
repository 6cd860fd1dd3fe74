package policy

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// guest is a small module, made by hand: a policy that answers nothing, with whatever a test wants to be different about it.
type guest struct {
	imports []hostFunction
	bodies  map[string][]byte    // code by export, instead of the usual one
	types   map[string]signature // types by export, instead of the usual one
	without []string             // exports to leave out
	data    map[uint32][]byte    // what stands in memory
	memory  []byte               // a memory's limits, instead of eight pages
	table   uint32               // entries of a table; 0: none
	start   bool
	custom  []byte // a section to append
	hooks   []string
}

// The parts of the binary format that are assembled.
const (
	wasmMagic   = "\x00asm"
	coreVersion = "\x01\x00\x00\x00"

	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionExport   = 7
	sectionStart    = 8
	sectionCode     = 10
	sectionData     = 11

	kindFunction = 0
	kindMemory   = 2
)

// Where things stand in a guest's memory.
const (
	scratchAt  = 256
	errorAt    = 512
	decisionAt = 1024
	answerAt   = 4096
	inputAt    = pageSize
	bigView    = 16 << 10 // bytes; a view of many has more, one of a self-test less
)

// harmless returns the code of a policy that answers nothing, by export.
func harmless(decision []byte) (bodies map[string][]byte, types map[string]signature) {
	answer := code(i64Const(packed(decisionAt, len(decision))))
	bodies = map[string][]byte{
		hostabi.ExportABI:       code(i32Const(hostabi.ABIVersion)),
		hostabi.ExportAlloc:     code(i32Const(inputAt)),
		hostabi.ExportError:     code(i64Const(packed(errorAt, 4))),
		hostabi.ExportConfigure: code(i64Const(1)),
		hostabi.ExportAllocate:  answer,
		hostabi.ExportRelease:   answer,
	}
	types = map[string]signature{
		hostabi.ExportABI:       returning(i32),
		hostabi.ExportAlloc:     returning(i32, i32, i32),
		hostabi.ExportError:     returning(i64),
		hostabi.ExportConfigure: returning(i64, i32, i32),
		hostabi.ExportAllocate:  returning(i64, i32, i32),
		hostabi.ExportRelease:   returning(i64, i32, i32),
		initialize:              taking(),
		"_start":                taking(),
	}
	return bodies, types
}

// assemble returns the module, with a manifest.
func (g guest) assemble(t testing.TB) []byte {
	t.Helper()
	module, err := hostabi.AppendManifest(g.bare(), hostabi.Manifest{
		Name: "hostile", Version: "1", ABI: hostabi.ABIRange{Major: hostabi.ABIMajor}, Hooks: g.named(), Description: "made by hand",
	})
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func (g guest) named() []string {
	if g.hooks != nil {
		return g.hooks
	}
	return []string{"allocate", "release"}
}

// bare returns the module without a manifest.
func (g guest) bare() []byte {
	decision := hostabi.EncodeDecision(nil, hostabi.Decision{})
	bodies, types := harmless(decision)
	maps.Copy(bodies, g.bodies)
	maps.Copy(types, g.types)
	for _, name := range g.without {
		delete(bodies, name)
	}
	data := map[uint32][]byte{errorAt: []byte("oops"), decisionAt: decision}
	maps.Copy(data, g.data)
	names := slices.Sorted(maps.Keys(bodies))

	var typeList, importList, functionList, exportList, codeList [][]byte
	for i, f := range g.imports {
		typeList = append(typeList, encode(f.signature))
		importList = append(importList, slices.Concat(text(f.module), text(f.name), []byte{kindFunction}, uleb(i)))
	}
	for i, name := range names {
		index := len(g.imports) + i
		typeList = append(typeList, encode(types[name]))
		functionList = append(functionList, uleb(index))
		exportList = append(exportList, slices.Concat(text(name), []byte{kindFunction}, uleb(index)))
		codeList = append(codeList, sized(bodies[name]))
	}
	if !slices.Contains(g.without, "memory") {
		exportList = append(exportList, append(text("memory"), kindMemory, 0))
	}
	var dataList [][]byte
	for _, at := range slices.Sorted(maps.Keys(data)) {
		dataList = append(dataList, slices.Concat([]byte{0}, i32Const(int32(at)), []byte{0x0b}, sized(data[at])))
	}
	out := []byte(wasmMagic + coreVersion)
	out = append(out, section(sectionType, typeList)...)
	out = append(out, section(sectionImport, importList)...)
	out = append(out, section(sectionFunction, functionList)...)
	if g.table > 0 {
		out = append(out, section(sectionTable, [][]byte{append([]byte{0x70, 0}, uleb(int(g.table))...)})...)
	}
	limits := g.memory
	if limits == nil {
		limits = []byte{0, 8}
	}
	out = append(out, section(sectionMemory, [][]byte{limits})...)
	out = append(out, section(sectionExport, exportList)...)
	if g.start {
		out = append(out, sectionStart, 1, byte(len(g.imports)+slices.Index(names, initialize)))
	}
	out = append(out, section(sectionCode, codeList)...)
	out = append(out, section(sectionData, dataList)...)
	return append(out, g.custom...)
}

// answering returns a guest that answers big questions with the given bytes.
func answering(decision []byte) guest {
	g := deciding(i64Const(packed(answerAt, len(decision))), giveBack)
	g.data = map[uint32][]byte{answerAt: decision}
	return g
}

// deciding returns a guest that does something when it is asked a big question: not in its self-test, which would give it away. What it
// does leaves nothing on the stack, or returns.
func deciding(instructions ...[]byte) guest {
	return guest{bodies: map[string][]byte{hostabi.ExportAllocate: code(whenBig(instructions...), plainAnswer())}}
}

// whenBig does something if the view is longer than any of a self-test.
func whenBig(instructions ...[]byte) []byte {
	return slices.Concat(localGet(1), i32Const(bigView), []byte{0x4b, 0x04, 0x40}, bytes.Join(instructions, nil), []byte{0x0b}) // gt_u, if, end
}

// plainAnswer returns an empty decision.
func plainAnswer() []byte {
	return i64Const(packed(decisionAt, len(hostabi.EncodeDecision(nil, hostabi.Decision{}))))
}

func section(id byte, entries [][]byte) []byte {
	if len(entries) == 0 {
		return nil
	}
	return append([]byte{id}, sized(append(uleb(len(entries)), bytes.Join(entries, nil)...))...)
}

func encode(s signature) []byte {
	return slices.Concat([]byte{0x60}, sized(s.Params), sized(s.Results))
}

func sized(b []byte) []byte     { return append(uleb(len(b)), b...) }
func text(s string) []byte      { return sized([]byte(s)) }
func uleb(n int) []byte         { return binary.AppendUvarint(nil, uint64(n)) }
func packed(at, n int) int64    { return int64(at)<<32 | int64(uint32(n)) }
func i32Const(n int32) []byte   { return append([]byte{0x41}, sleb(int64(n))...) }
func i64Const(n int64) []byte   { return append([]byte{0x42}, sleb(n)...) }
func callTo(index int) []byte   { return append([]byte{0x10}, uleb(index)...) }
func localGet(index int) []byte { return append([]byte{0x20}, uleb(index)...) }

// code returns a function's body without locals.
func code(instructions ...[]byte) []byte {
	return slices.Concat([]byte{0}, bytes.Join(instructions, nil), []byte{0x0b})
}

// Instructions.
var (
	trap     = []byte{0x00}
	drop     = []byte{0x1a}
	giveBack = []byte{0x0f}
	grow     = []byte{0x40, 0x00}
	add      = []byte{0x6a}
	load32   = []byte{0x28, 2, 0}
	store32  = []byte{0x36, 2, 0}
	forever  = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00} // loop br 0 end unreachable
)

// untilFull grows memory until that no longer works, and then does more with it than there is.
func untilFull() []byte {
	return slices.Concat([]byte{0x03, 0x40}, i32Const(256), grow, i32Const(-1), []byte{0x47, 0x0d, 0x00, 0x0b}, trap) // ne, br_if 0
}

// repeated does something n times. The address scratchAt counts.
func repeated(n int32, instructions ...[]byte) []byte {
	return slices.Concat(i32Const(scratchAt), i32Const(0), []byte{0x36, 2, 0}, // store
		[]byte{0x03, 0x40}, bytes.Join(instructions, nil),
		i32Const(scratchAt), i32Const(scratchAt), []byte{0x28, 2, 0}, i32Const(1), []byte{0x6a, 0x36, 2, 0}, // load, add, store
		i32Const(scratchAt), []byte{0x28, 2, 0}, i32Const(n), []byte{0x48, 0x0d, 0x00, 0x0b}) // load, lt_s, br_if 0
}

func sleb(n int64) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// host returns a function that the host offers.
func host(t testing.TB, module, name string) hostFunction {
	t.Helper()
	for _, f := range offers() {
		if f.module == module && f.name == name {
			return f
		}
	}
	t.Fatalf("the host offers no %s.%s", module, name)
	return hostFunction{}
}

// What is made by hand is a valid policy to start with.
func TestAssembledGuestDecides(t *testing.T) {
	h := newHost(t)
	want := hostabi.Decision{Creates: []hostabi.Create{{Profile: 1, Count: 5, Reason: "because"}}, NextCallMS: 77, State: []byte("kept")}
	bind(t, h, "shop/a", answering(hostabi.EncodeDecision(nil, want)).assemble(t))
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big())
	if answer.Fault != "" || answer.Policy != "hostile" || len(answer.Decision.Creates) != 1 || answer.Decision.Creates[0] != want.Creates[0] ||
		answer.Decision.NextCallMS != 77 || string(answer.Decision.State) != "kept" {
		t.Errorf("answer %+v, want decision %+v", answer, want)
	}
}

// bind loads a module and lets it decide.
func bind(t testing.TB, h *Host, app string, wasm []byte) Module {
	t.Helper()
	m, err := h.Load(t.Context(), "", wasm)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Bind(t.Context(), app, Binding{Policy: m.Name}); err != nil {
		t.Fatal(err)
	}
	return m
}
