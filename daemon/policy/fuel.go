package policy

import (
	"context"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/meter"
)

// sliceTicks is how much fuel a guest gets at a time. While it burns that, nothing else can stop it: machine code cannot be preempted.
const sliceTicks = 1_000

// What stops a guest from outside. The engine hands them back as the error of the guest's call.
var (
	errFuel = errors.New("its fuel is used up")
	errTime = errors.New("its time is up")
	errDeep = errors.New("its calls are nested too deep")
)

// tank is the fuel of one call.
type tank struct {
	budget int64 // ticks
	used   int64 // ticks, those of the slice in the guest not counted
	slice  int32 // ticks that were handed over last
	until  time.Time
}

// fill readies the tank for a call.
func (t *tank) fill(budget int64, until time.Time) { *t = tank{budget: budget, until: until} }

// refill hands over the next slice: left is what the guest took beyond the last one, a negative number. It panics to stop the guest.
func (t *tank) refill(ctx context.Context, left int32) int32 {
	t.used, t.slice = t.used+int64(t.slice)-int64(left), 0
	switch {
	case t.used > t.budget:
		panic(errFuel)
	case ctx.Err() != nil:
		panic(ctx.Err())
	case !time.Now().Before(t.until):
		panic(errTime)
	}
	t.slice = int32(min(sliceTicks, t.budget-t.used))
	return t.slice
}

// burnt returns the ticks of the whole call, given what is left of the guest's slice. Nothing is if the guest was stopped.
func (t *tank) burnt(left int32) int64 { return t.used + int64(t.slice) - int64(max(left, 0)) }

// offerFuel makes what metered modules import importable.
func (w *worlds) offerFuel(ctx context.Context, runtime wazero.Runtime) error {
	_, err := runtime.NewHostModuleBuilder(meter.ModuleName).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, guest api.Module, stack []uint64) {
		stack[0] = api.EncodeI32(w.mustFind(guest).tank.refill(ctx, api.DecodeI32(stack[0])))
	}), []api.ValueType{i32}, []api.ValueType{i32}).Export(meter.Refill).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errDeep) }), nil, nil).Export(meter.TooDeep).
		Instantiate(ctx)
	return err
}
