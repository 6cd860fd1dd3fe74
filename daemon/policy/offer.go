package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
)

// The types that cross the border.
const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// signature is the type of a function.
type signature = wasm.Signature

// hostFunction is something that the host offers to modules.
type hostFunction struct {
	module, name string
	signature
	// call takes the parameters from stack and leaves the result there. It runs inside of the guest's call.
	call func(w *world, guest api.Module, stack []uint64)
}

// taking returns the type of a function with the given parameters and no result.
func taking(params ...api.ValueType) signature { return signature{Params: params} }

// returning returns the type of a function with the given result and parameters.
func returning(result api.ValueType, params ...api.ValueType) signature {
	return signature{Params: params, Results: []api.ValueType{result}}
}

// The levels of retinue.log, and one for what an instance prints.
const (
	levelDebug   = 0
	levelInfo    = 1
	levelWarn    = 2
	levelError   = 3
	levelPrinted = 1 << 31
)

// The kinds of retinue.metric.
const (
	metricCounter = 1 // the value is added
	metricGauge   = 2 // the value is what holds from now on
)

// offers returns everything that a module may import, in the order in which it is shown to people.
func offers() []hostFunction {
	own := []hostFunction{
		{"retinue", "log", taking(i32, i32, i32), func(w *world, guest api.Module, s []uint64) {
			text, ok := guest.Memory().Read(api.DecodeU32(s[1]), min(api.DecodeU32(s[2]), maxLine))
			if w.tank.charge(len(text)); ok {
				w.say(min(api.DecodeU32(s[0]), levelError), text)
			}
		}},
		{"retinue", "metric", taking(i32, i32, i32, i64), func(w *world, guest api.Module, s []uint64) {
			name, ok := guest.Memory().Read(api.DecodeU32(s[1]), min(api.DecodeU32(s[2]), maxMetricName+1))
			if w.tank.charge(len(name)); ok {
				w.measure(api.DecodeU32(s[0]), string(name), int64(s[3]))
			}
		}},
	}
	return append(own, wasi()...)
}

// worlds finds the world of an instance for the functions that it calls.
type worlds struct {
	of sync.Map // api.Module → *world
}

func (w *worlds) add(guest api.Module, its *world) { w.of.Store(guest, its) }

func (w *worlds) remove(guest api.Module) { w.of.Delete(guest) }

// errStranger ends a guest that calls out before the host knows it. A start section could, which check refuses.
var errStranger = errors.New("the instance is not known to the host")

func (w *worlds) mustFind(guest api.Module) *world {
	its, known := w.of.Load(guest)
	if !known {
		panic(errStranger) // the engine turns it into an error of the guest's call
	}
	return its.(*world)
}

// offer makes functions importable for all modules of a runtime.
func (w *worlds) offer(ctx context.Context, runtime wazero.Runtime, functions []hostFunction) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range functions {
		if builders[f.module] == nil {
			builders[f.module] = runtime.NewHostModuleBuilder(f.module)
		}
		call := api.GoModuleFunc(func(_ context.Context, guest api.Module, stack []uint64) { f.call(w.mustFind(guest), guest, stack) })
		builders[f.module].NewFunctionBuilder().WithGoModuleFunction(call, f.Params, f.Results).Export(f.name)
	}
	for module, builder := range builders {
		if _, err := builder.Instantiate(ctx); err != nil {
			return fmt.Errorf("offering the functions of %s to modules: %w", module, err)
		}
	}
	if err := w.offerFuel(ctx, runtime); err != nil {
		return fmt.Errorf("offering fuel to modules: %w", err)
	}
	return nil
}
