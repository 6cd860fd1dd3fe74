package policy

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/retinue-sched/retinue/hostabi"
)

// initialize is what a reactor exports to be run once.
const initialize = "_initialize"

// instance is one live module. One goroutine at a time uses it; after a fault it is only good for being closed.
type instance struct {
	guest  api.Module
	engine *engine
	world  *world
	pages  *mapping // its memory, or nil if that cannot be put back by page
	image  *image   // what it is put back to
	ticks  int64    // of the last question, or of the start

	fuel    api.MutableGlobal   // what is left of the slice
	globals []api.MutableGlobal // all others that change

	// Looking an export up allocates, so each is looked up once.
	alloc, configure, failure api.Function
	hooks                     [hostabi.HookRelease + 1]api.Function
	stack                     [3]uint64 // parameters and result of a call
}

// start makes the first instance of a module with its settings: it starts it, checks its version, hands it its settings, lets it make room for
// views of up to reserve bytes, and takes its image.
func (e *engine) start(ctx context.Context, m *module, settings string, reserve int) (*instance, *fault) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StartTimeout)
	defer cancel()
	i, f := e.instantiate(ctx, m)
	if f != nil {
		return nil, f
	}
	if f = i.start(ctx, settings); f == nil {
		_, f = i.room(ctx, hostabi.BufferInput, reserve)
	}
	if f != nil {
		i.close(ctx)
		return nil, f.under(e.cfg, keyStart)
	}
	i.image = i.take(reserve)
	i.world.started = i.image.clock
	return i, nil
}

// revive makes an instance from an image: nothing of the module is run.
func (e *engine) revive(ctx context.Context, m *module, img *image) (*instance, *fault) {
	i, f := e.instantiate(ctx, m)
	if f != nil {
		return nil, f
	}
	if i.image = img; !i.assume(img) {
		i.close(ctx)
		return nil, faultf(causeStart, "could not be made again: there is no memory for it")
	}
	return i, nil
}

// instantiate makes an instance of a module in which nothing has run.
func (e *engine) instantiate(ctx context.Context, m *module) (*instance, *fault) {
	i := &instance{engine: e, world: newWorld(m.Digest, e.cfg.MemoryLimit)}
	guest, err := i.make(ctx, m)
	if err != nil {
		if i.pages != nil {
			i.pages.Free() // the engine frees only what it has handed out
		}
		return nil, faultOf(ctx, "being instantiated", err, "")
	}
	i.guest = guest
	i.alloc, i.configure, i.failure = guest.ExportedFunction(hostabi.ExportAlloc), guest.ExportedFunction(hostabi.ExportConfigure), guest.ExportedFunction(hostabi.ExportError)
	for _, hook := range hooks() {
		i.hooks[hook] = guest.ExportedFunction(exportOf(hook))
	}
	i.fuel, _ = guest.ExportedGlobal(m.fuel).(api.MutableGlobal)
	i.globals = variables(guest, m.globals)
	e.worlds.add(guest, i.world)
	e.meters.instances.Add(ctx, 1)
	return i, nil
}

// make has the engine make the guest. It panics if there is no memory for it.
func (i *instance) make(ctx context.Context, m *module) (guest api.Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("there is no memory for it: %v", r)
		}
	}()
	// Without a name instances do not clash; without start functions nothing runs before the world is there.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(i.allocate))
	return m.runtime.InstantiateModule(ctx, m.code, config)
}

// close ends the instance. Nothing of it may be used after that.
func (i *instance) close(ctx context.Context) {
	i.engine.worlds.remove(i.guest)
	i.engine.meters.instances.Add(ctx, -1)
	_ = i.guest.Close(ctx) // it fails only if closing files does, and there are none
}

func (i *instance) start(ctx context.Context, settings string) *fault {
	if run := i.guest.ExportedFunction(initialize); run != nil {
		if _, f := i.call(ctx, "starting", run); f != nil {
			return f
		}
	}
	version, f := i.call(ctx, "telling its version", i.guest.ExportedFunction(hostabi.ExportABI))
	if f != nil {
		return f
	}
	if major, minor := api.DecodeU32(version)>>16, api.DecodeU32(version)&0xffff; major != hostabi.ABIMajor || minor > hostabi.ABIMinor {
		return faultf(causeStart, "speaks version %d.%d of the contract, this host %d.%d", major, minor, hostabi.ABIMajor, hostabi.ABIMinor)
	}
	return i.accept(ctx, settings)
}

// accept hands the settings over. A module that takes none has none to refuse, so it gets none but the empty ones.
func (i *instance) accept(ctx context.Context, settings string) *fault {
	if i.configure == nil {
		if settings != noSettings {
			return faultf(causeError, "takes no settings")
		}
		return nil
	}
	at, f := i.hand(ctx, hostabi.BufferSettings, []byte(settings))
	if f != nil {
		return f
	}
	taken, f := i.call(ctx, "reading its settings", i.configure, at, uint64(len(settings)))
	switch {
	case f != nil:
		return f
	case taken == 0:
		return i.refusal(ctx, "refused its settings")
	}
	return nil
}

// ask asks about an encoded view and returns a checked decision that does not share memory with the guest.
func (i *instance) ask(ctx context.Context, hook hostabi.Hook, view []byte) (hostabi.Decision, *fault) {
	i.ticks = 0
	answer, f := i.answer(ctx, hook, view)
	if f != nil {
		return hostabi.Decision{}, f
	}
	decision, err := hostabi.DecodeDecision(answer)
	if err != nil {
		return hostabi.Decision{}, faultf(causeDecision, "answered with what is no decision: %w", err)
	}
	return decision, nil
}

// answer returns what the guest answers, in the guest's memory.
func (i *instance) answer(ctx context.Context, hook hostabi.Hook, view []byte) ([]byte, *fault) {
	at, f := i.hand(ctx, hostabi.BufferInput, view)
	if f != nil {
		return nil, f
	}
	packed, f := i.call(ctx, "deciding", i.hooks[hook], at, uint64(len(view)))
	switch {
	case f != nil:
		return nil, f
	case packed == 0:
		return nil, i.refusal(ctx, "could not decide")
	}
	return i.read(packed, i.engine.cfg.OutputLimit)
}

// room lets the guest make a buffer and returns where it is.
func (i *instance) room(ctx context.Context, kind hostabi.BufferKind, size int) (uint64, *fault) {
	at, f := i.call(ctx, "making room", i.alloc, uint64(kind), uint64(size))
	if f == nil && api.DecodeU32(at) == 0 {
		f = faultf(causeMemory, "has no room for %d bytes", size)
	}
	return at, f
}

// hand copies bytes into a buffer of the guest and returns where it is.
func (i *instance) hand(ctx context.Context, kind hostabi.BufferKind, b []byte) (uint64, *fault) {
	at, f := i.room(ctx, kind, len(b))
	if f != nil {
		return 0, f
	}
	if i.pages != nil {
		i.pages.expect(uint64(api.DecodeU32(at)), uint64(len(b)))
	}
	// The memory may have grown and moved in the call, so it is asked for anew each time.
	if !i.guest.Memory().Write(api.DecodeU32(at), b) {
		return 0, faultf(causeMemory, "has its buffer for %d bytes at %d, outside of its memory", len(b), api.DecodeU32(at))
	}
	return at, nil
}

// read returns what a pointer and a length in one number stand for. It is the guest's memory: it changes with the next call.
func (i *instance) read(packed uint64, limit int) ([]byte, *fault) {
	at, size := uint32(packed>>32), uint32(packed)
	if uint64(size) > uint64(limit) {
		return nil, faultf(causeOutput, "answered with %d bytes, more than the limit of %d", size, limit)
	}
	b, ok := i.guest.Memory().Read(at, size)
	if !ok {
		return nil, faultf(causeMemory, "answered with %d bytes at %d, outside of its memory", size, at)
	}
	return b, nil
}

// refusal asks the guest why.
func (i *instance) refusal(ctx context.Context, what string) *fault {
	packed, f := i.call(ctx, "saying what is wrong", i.failure)
	if f != nil {
		return f
	}
	at, size := packed>>32, min(packed&(1<<32-1), hostabi.MaxErrorSize)
	text, f := i.read(at<<32|size, hostabi.MaxErrorSize)
	if f != nil {
		return f
	}
	reason, trace, _ := strings.Cut(strings.TrimSpace(printableText(text)), "\n")
	if reason == "" {
		reason = "it does not say why"
	}
	f = faultf(causeError, "%s: %s", what, reason)
	f.trace = trace
	return f
}

// printableText is printable for text of several lines.
func printableText(text []byte) string {
	for len(text) > 0 && !utf8.Valid(text) { // cut in the middle of a character, or no text at all
		text = text[:len(text)-1]
	}
	lines := strings.Split(string(text), "\n")
	for n, l := range lines {
		lines[n] = printable([]byte(l))
	}
	return strings.Join(lines, "\n")
}

// call calls a function of the guest. doing says what for, in case it goes wrong.
func (i *instance) call(ctx context.Context, doing string, f api.Function, params ...uint64) (uint64, *fault) {
	i.stack = [3]uint64{}
	copy(i.stack[:], params)
	i.world.tank.fill(ctx, i.engine.cfg.Fuel-i.ticks)
	i.fuel.Set(0)
	err := f.CallWithStack(ctx, i.stack[:])
	i.ticks += i.world.tank.burnt(api.DecodeI32(i.fuel.Get()))
	if err != nil {
		return 0, faultOf(ctx, doing, err, i.world.lastWords())
	}
	return i.stack[0], nil
}
