package policy

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/retinue-sched/retinue/hostabi"
)

// initialize is what a reactor exports to be run once.
const initialize = "_initialize"

// instance is one live module. One goroutine at a time uses it; after a fault it is only good for being closed.
type instance struct {
	guest  api.Module
	worlds *worlds
	world  *world
	output int // bytes that a decision may have

	// Looking an export up allocates, so each is looked up once.
	alloc, configure, failure api.Function
	hooks                     [hostabi.HookRelease + 1]api.Function
	stack                     [3]uint64 // parameters and result of a call
}

// instantiate makes an instance of a module: it starts it, checks its version and hands it its settings.
func (e *engine) instantiate(ctx context.Context, m *module, settings string) (*instance, *fault) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StartTimeout)
	defer cancel()
	// Without a name instances do not clash; without start functions nothing runs before the world is there.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	guest, err := e.runtime.InstantiateModule(ctx, m.code, config)
	if err != nil {
		return nil, faultOf(ctx, "being instantiated", err, "")
	}
	i := &instance{
		guest: guest, worlds: &e.worlds, world: newWorld(m.Digest, e.cfg.MemoryLimit), output: e.cfg.OutputLimit,
		alloc:     guest.ExportedFunction(hostabi.ExportAlloc),
		configure: guest.ExportedFunction(hostabi.ExportConfigure),
		failure:   guest.ExportedFunction(hostabi.ExportError),
	}
	for _, hook := range hooks() {
		i.hooks[hook] = guest.ExportedFunction(exportOf(hook))
	}
	e.worlds.add(guest, i.world)
	if f := i.start(ctx, settings); f != nil {
		i.close(ctx)
		return nil, f
	}
	return i, nil
}

// close ends the instance. Nothing of it may be used after that.
func (i *instance) close(ctx context.Context) {
	i.worlds.remove(i.guest)
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
	return i.read(packed, i.output)
}

// hand copies bytes into a buffer of the guest and returns where it is.
func (i *instance) hand(ctx context.Context, kind hostabi.BufferKind, b []byte) (uint64, *fault) {
	at, f := i.call(ctx, "making room", i.alloc, uint64(kind), uint64(len(b)))
	switch {
	case f != nil:
		return 0, f
	case api.DecodeU32(at) == 0:
		return 0, faultf(causeMemory, "has no room for %d bytes", len(b))
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
	if err := f.CallWithStack(ctx, i.stack[:]); err != nil {
		return 0, faultOf(ctx, doing, err, i.world.lastWords())
	}
	return i.stack[0], nil
}
