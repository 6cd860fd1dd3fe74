package meter

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// slice is how many ticks a tank gives at a time.
const slice = 1_000

// What a tank stops a guest with.
var (
	errSpent   = errors.New("out of fuel")
	errTooDeep = errors.New("calls are nested too deep")
)

// tank is the host's side of metering.
type tank struct {
	budget int64       // ticks that may still be given out
	given  int64       // ticks that were given out
	onFill func(int32) // or nil
}

// refill gives the next slices, as many as it takes.
func (t *tank) refill(left int32) int32 {
	if t.onFill != nil {
		t.onFill(left)
	}
	for left < 0 {
		if t.budget < slice {
			panic(errSpent)
		}
		t.budget, t.given, left = t.budget-slice, t.given+slice, left+slice
	}
	return left
}

// engine is a runtime with what modules import.
type engine struct {
	wazero.Runtime
	tank *tank
}

func interpreter() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }
func compiler() wazero.RuntimeConfig    { return wazero.NewRuntimeConfigCompiler() }

func newEngine(t testing.TB, config wazero.RuntimeConfig) *engine {
	t.Helper()
	ctx := context.Background()
	e := &engine{Runtime: wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(DefaultConfig().MemoryPages).WithCoreFeatures(api.CoreFeaturesV2)), tank: &tank{}}
	t.Cleanup(func() { e.Close(ctx) })
	_, err := e.NewHostModuleBuilder(ModuleName).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
		stack[0] = api.EncodeI32(e.tank.refill(api.DecodeI32(stack[0])))
	}), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export(Refill).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errTooDeep) }), nil, nil).Export(TooDeep).
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, e.Runtime)
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	nothing := api.GoFunc(func(context.Context, []uint64) {})
	_, err = e.NewHostModuleBuilder("retinue").
		NewFunctionBuilder().WithGoFunction(nothing, []api.ValueType{i32, i32, i32}, nil).Export("log").
		NewFunctionBuilder().WithGoFunction(nothing, []api.ValueType{i32, i32, i32, i64}, nil).Export("metric").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// instance is a live module, plain or metered.
type instance struct {
	api.Module
	tank    *tank
	metered *Metered // or nil
}

func (e *engine) instantiate(t testing.TB, binary []byte, metered *Metered) *instance {
	t.Helper()
	m, err := e.InstantiateWithConfig(context.Background(), binary, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(context.Background()) })
	return &instance{Module: m, tank: e.tank, metered: metered}
}

// outcome is what a call leaves.
type outcome struct {
	Results []uint64
	Err     string // the first line
	Memory  uint64 // a hash
	Pages   uint32
	Globals []uint64
	Ticks   int64
}

// parse lets a module through or fails.
func parse(t testing.TB, binary []byte) *wasm.Module {
	t.Helper()
	m, err := wasm.Parse(binary, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rewrite meters a module or fails.
func rewrite(t testing.TB, binary []byte) *Metered {
	t.Helper()
	metered, err := Rewrite(parse(t, binary), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return metered
}

// call is a call to an export.
type call struct {
	name string
	args []uint64
}

// plenty is a budget that no test uses up unless it wants to.
const plenty = 1 << 40

// do makes a call. After a trap, the depth is put back, as a host does.
func (i *instance) do(c call) outcome { return i.within(plenty, c) }

// within makes a call that may burn so many ticks.
func (i *instance) within(budget int64, c call) (o outcome) {
	*i.tank = tank{budget: budget, onFill: i.tank.onFill}
	if i.metered != nil {
		i.ExportedGlobal(i.metered.Fuel).(api.MutableGlobal).Set(0)
	}
	results, err := i.ExportedFunction(c.name).Call(context.Background(), c.args...)
	for n, typ := range i.ExportedFunction(c.name).Definition().ResultTypes() {
		if n < len(results) && (typ == api.ValueTypeI32 || typ == api.ValueTypeF32) {
			results[n] = uint64(uint32(results[n])) // the upper half is anything
		}
	}
	if len(results) > 0 { // for the interpreter, none are another none
		o.Results = results
	}
	if err != nil {
		o.Err = firstLine(err)
	}
	if i.metered != nil {
		o.Ticks = i.tank.given - int64(api.DecodeI32(i.ExportedGlobal(i.metered.Fuel).Get()))
		if err != nil {
			i.ExportedGlobal(i.metered.Depth).(api.MutableGlobal).Set(uint64(DefaultConfig().CallDepth))
		}
	}
	if len(i.ExportedMemoryDefinitions()) > 0 {
		memory := i.Memory()
		all, _ := memory.Read(0, memory.Size())
		o.Memory, o.Pages = hash(all), memory.Size()/wasm.PageSize
	}
	return o
}
