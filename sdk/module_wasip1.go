package sdk

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/retinue-sched/retinue/hostabi"
)

// warmUp is how much memory configure touches and gives back. The host takes the module's image after that, and a
// call that then grows memory costs the instance, so ordinary calls must find room.
const warmUp = 4 << 20

// module is this module: its policy, and the memory that the host knows the address of. It is the one variable of
// the package, because exported functions have no receiver.
var module struct {
	policy   NativePolicy
	input    []byte
	settings []byte
	err      []byte
	ballast  []byte
}

// Register makes p the policy of this module. Call it in an init function of package main: the main function of a
// module never runs.
func Register(p Policy) { module.policy.policy = p }

//go:wasmexport retinue_abi
func abi() int32 { return hostabi.ABIVersion }

//go:wasmexport retinue_alloc
func alloc(kind, size int32) int32 {
	defer runtime.Gosched()
	buffer := bufferOf(hostabi.BufferKind(kind))
	if buffer == nil || size < 0 {
		return 0
	}
	if cap(*buffer) < int(size) {
		*buffer = make([]byte, max(int(size), 64)) // not so small that it may start at an odd address
	}
	*buffer = (*buffer)[:size]
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(*buffer))))
}

//go:wasmexport retinue_configure
func configure(ptr, size int32) int64 {
	defer runtime.Gosched()
	text, err := handed(hostabi.BufferSettings, ptr, size)
	if err == nil {
		err = start(text)
	}
	if err != nil {
		return fail(err)
	}
	makeRoom()
	return 1
}

//go:wasmexport retinue_allocate
func allocate(ptr, size int32) int64 { return call(hostabi.HookAllocate, ptr, size) }

//go:wasmexport retinue_release
func release(ptr, size int32) int64 { return call(hostabi.HookRelease, ptr, size) }

//go:wasmexport retinue_error
func lastError() int64 { return packed(module.err) }

// start configures the registered policy.
func start(settings []byte) error {
	if module.policy.policy == nil {
		return errors.New("the module has no policy: call sdk.Register in an init function of package main")
	}
	return module.policy.configure(settings)
}

// call answers a hook.
func call(hook hostabi.Hook, ptr, size int32) int64 {
	// Without this the collector, which needs the scheduler, would never finish in a module that is not restored.
	defer runtime.Gosched()
	view, err := handed(hostabi.BufferInput, ptr, size)
	if err != nil {
		return fail(err)
	}
	answer, err := module.policy.Call(hook, view)
	if err != nil {
		return fail(err)
	}
	return packed(answer)
}

// handed returns what the host wrote into a buffer, if that is where it says it did.
func handed(kind hostabi.BufferKind, ptr, size int32) ([]byte, error) {
	buffer := *bufferOf(kind)
	if size < 0 || int(size) > cap(buffer) || ptr != int32(uintptr(unsafe.Pointer(unsafe.SliceData(buffer)))) {
		if size == 0 {
			return nil, nil
		}
		return nil, errors.New("the bytes are not in the buffer that retinue_alloc gave")
	}
	return buffer[:size], nil
}

// bufferOf returns the buffer of a kind, or nil.
func bufferOf(kind hostabi.BufferKind) *[]byte {
	switch kind {
	case hostabi.BufferInput:
		return &module.input
	case hostabi.BufferSettings:
		return &module.settings
	default:
		return nil
	}
}

// fail keeps err for retinue_error and returns what says that there is one.
func fail(err error) int64 {
	module.err = append(module.err[:0], cut(err.Error(), hostabi.MaxErrorSize)...)
	return 0
}

// packed returns where b is and how long, in one number.
func packed(b []byte) int64 {
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | int64(len(b))
}

// makeRoom grows the heap and gives it back to the allocator.
func makeRoom() {
	module.ballast = make([]byte, warmUp)
	for i := 0; i < len(module.ballast); i += 4096 {
		module.ballast[i] = 1
	}
	module.ballast = nil
	runtime.GC()
}
