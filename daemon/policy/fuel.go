package policy

import (
	"context"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/daemon/policy/meter"
)

// How much fuel a guest gets at a time, in ticks. While it burns that nothing can stop it, and the collector of the whole daemon waits for it: machine
// code cannot be preempted. So a guest begins with little and gets more while it is quick: a tick in which pages are touched for the first time may
// take a thousand times as long as one in the cache.
const (
	leastSlice = 100
	mostSlice  = 1_000
	quick      = 100 * time.Microsecond // a slice that takes less is doubled
	slow       = time.Millisecond       // one that takes more is halved
)

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
	size   int64 // ticks to be handed over next
	handed time.Time
	until  time.Time
	ctx    context.Context //nolint:containedctx // of the call that burns the fuel
}

// fill readies the tank for a call.
func (t *tank) fill(ctx context.Context, budget int64) {
	until, _ := ctx.Deadline() // each caller has set one
	*t = tank{budget: budget, size: leastSlice, until: until, ctx: ctx}
}

// refill hands over the next slice: left is what the guest took beyond the last one, a negative number. It panics to stop the guest.
func (t *tank) refill(left int32) int32 {
	t.used, t.slice = t.used+int64(t.slice)-int64(left), 0
	t.adapt(t.look())
	t.slice = int32(min(t.size, t.budget-t.used))
	return t.slice
}

// look stops the guest if it may not go on, and returns the time.
func (t *tank) look() time.Time {
	now := time.Now()
	switch {
	case t.used > t.budget:
		panic(errFuel)
	case t.ctx.Err() != nil:
		panic(t.ctx.Err())
	case !now.Before(t.until):
		panic(errTime)
	}
	return now
}

// bytesPerTick is how many bytes a tick pays for that the host handles for a guest.
const bytesPerTick = 64

// charge pays for what the host is about to do for the guest, which is no more than a chunk of bytes at a time. It panics to stop the guest.
func (t *tank) charge(bytes int) {
	t.used += 1 + int64(bytes)/bytesPerTick
	t.look()
}

// adapt sets how much to hand over by how long the guest took for the last slice. How much fuel a call takes does not depend on it.
func (t *tank) adapt(now time.Time) {
	if !t.handed.IsZero() {
		switch took := now.Sub(t.handed); {
		case took < quick:
			t.size = min(2*t.size, mostSlice)
		case took > slow:
			t.size = max(t.size/2, leastSlice)
		}
	}
	t.handed = now
}

// burnt returns the ticks of the whole call, given what is left of the guest's slice. Nothing is if the guest was stopped.
func (t *tank) burnt(left int32) int64 { return t.used + int64(t.slice) - int64(max(left, 0)) }

// offerFuel makes what metered modules import importable.
func (w *worlds) offerFuel(ctx context.Context, runtime wazero.Runtime) error {
	_, err := runtime.NewHostModuleBuilder(meter.ModuleName).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, guest api.Module, stack []uint64) {
		stack[0] = api.EncodeI32(w.mustFind(guest).tank.refill(api.DecodeI32(stack[0])))
	}), []api.ValueType{i32}, []api.ValueType{i32}).Export(meter.Refill).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errDeep) }), nil, nil).Export(meter.TooDeep).
		Instantiate(ctx)
	return err
}
