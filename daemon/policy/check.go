package policy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/retinue-sched/retinue/daemon/policy/wasm"
	"github.com/retinue-sched/retinue/hostabi"
)

// checked is a module whose bytes have been looked at: it is a policy, it needs nothing that is not there, and it says which
// hooks it answers. Only check makes one, and only a checked module is compiled.
type checked struct {
	parsed      *wasm.Module
	digest      string
	manifest    hostabi.Manifest
	projections [hostabi.HookRelease + 1]hostabi.Projection
}

// check looks at a module, plain or compressed with gzip, without running or compiling anything of it. The error is one
// sentence about the module.
func check(module []byte, offers []hostFunction, cfg Config) (checked, error) {
	plain, err := unpack(module, cfg.ModuleLimit)
	if err != nil {
		return checked{}, err
	}
	parsed, err := wasm.Parse(plain, limitsOf(cfg))
	if err != nil {
		return checked{}, err
	}
	if err = compare(parsed, offers); err != nil {
		return checked{}, err
	}
	c := checked{parsed: parsed, digest: hostabi.Digest(plain)}
	if c.manifest, err = hostabi.ReadManifest(plain); err != nil {
		return checked{}, err
	}
	if err = c.checkManifest(); err != nil {
		return checked{}, err
	}
	return c, c.checkHooks()
}

// limitsOf are the limits of a module's shape.
func limitsOf(cfg Config) wasm.Limits {
	l := wasm.DefaultLimits()
	l.Size = cfg.ModuleLimit
	l.MemoryPages = uint32(cfg.MemoryLimit / pageSize)
	return l
}

// compare holds what the module needs and offers against what the host offers and needs. What helps a person most is said first.
func compare(m *wasm.Module, offers []hostFunction) error {
	list := make([]wasm.Offer, len(offers))
	for n, o := range offers {
		list[n] = wasm.Offer{Module: o.module, Name: o.name, Signature: o.signature}
	}
	return together(append(m.CompareImports(list), m.CompareExports(contract())...))
}

// together makes one sentence of many.
func together(gaps []error) error {
	var all error
	for _, gap := range gaps {
		if all == nil {
			all = gap
		} else {
			all = fmt.Errorf("%w; %w", all, gap)
		}
	}
	return all
}

// contract are the exports that any policy has.
func contract() []wasm.Want {
	return []wasm.Want{
		{Name: "memory", Kind: wasm.KindMemory},
		{Name: hostabi.ExportABI, Signature: returning(i32)},
		{Name: hostabi.ExportAlloc, Signature: returning(i32, i32, i32)},
		{Name: hostabi.ExportError, Signature: returning(i64)},
		{Name: hostabi.ExportConfigure, Signature: returning(i64, i32, i32), Optional: true},
		{Name: initialize, Optional: true},
	}
}

// unpack undoes gzip, if it is there, and holds the module to its limit.
func unpack(module []byte, limit int) ([]byte, error) {
	tooBig := fmt.Errorf("it has more than %d bytes, the limit for a module", limit)
	switch {
	case len(module) == 0:
		return nil, errors.New("it is not a WebAssembly module: it is empty")
	case len(module) > limit:
		return nil, tooBig
	case !bytes.HasPrefix(module, []byte{0x1f, 0x8b}):
		return module, nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(module))
	if err != nil {
		return nil, fmt.Errorf("it starts like gzip but cannot be unpacked: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(packed, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it starts like gzip but cannot be unpacked: %w", err)
	case len(plain) > limit:
		return nil, tooBig
	}
	return plain, nil
}

// checkHooks wants a function for each hook that the manifest names.
func (c *checked) checkHooks() error {
	for _, hook := range hooks() {
		if !c.manifest.Has(hook) {
			continue
		}
		want := wasm.Want{Name: exportOf(hook), Signature: returning(i64, i32, i32)}
		if gaps := c.parsed.CompareExports([]wasm.Want{want}); len(gaps) > 0 {
			return fmt.Errorf("its manifest names the hook %v, but %w", hook, gaps[0])
		}
	}
	return nil
}

// checkManifest holds what the module says of itself against this host.
func (c *checked) checkManifest() error {
	if !c.manifest.ABI.Includes(hostabi.ABIMajor, hostabi.ABIMinor) {
		return fmt.Errorf("it is built for version %v of the contract, this host speaks %d.%d: build it with the SDK of this release",
			c.manifest.ABI, hostabi.ABIMajor, hostabi.ABIMinor)
	}
	for _, hook := range hooks() {
		if !c.manifest.Has(hook) {
			continue
		}
		var err error
		if c.projections[hook], err = c.manifest.Projection(hook); err != nil {
			return fmt.Errorf("its manifest is wrong: %w", err)
		}
	}
	return nil
}
