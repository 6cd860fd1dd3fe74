package policy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retinue-sched/retinue/hostabi"
)

// maxTable is how many entries a table may start with.
const maxTable = 64 << 10

// checked is a module whose bytes have been looked at: it is a policy, it needs nothing that is not there, and it says which
// hooks it answers. Only check makes one, and only a checked module is compiled.
type checked struct {
	wasm        []byte
	digest      string
	manifest    hostabi.Manifest
	projections [hostabi.HookRelease + 1]hostabi.Projection
}

// check looks at a module, plain or compressed with gzip, without running or compiling anything of it. The error is one
// sentence about the module.
func check(module []byte, offers []hostFunction, cfg Config) (checked, error) {
	wasm, err := unpack(module, cfg.ModuleLimit)
	if err != nil {
		return checked{}, err
	}
	o, err := readOutline(wasm)
	if err != nil {
		return checked{}, err
	}
	c := checked{wasm: wasm, digest: hostabi.Digest(wasm)}
	if err = checkOutline(&o, offers, cfg.MemoryLimit); err != nil {
		return checked{}, err
	}
	if c.manifest, err = hostabi.ReadManifest(wasm); err != nil {
		return checked{}, err
	}
	if err = c.checkManifest(); err != nil {
		return checked{}, err
	}
	return c, checkHooks(&o, c.manifest)
}

// checkOutline wants a module of the right form that this host can run. What helps a person most is said first.
func checkOutline(o *outline, offers []hostFunction, memory uint64) error {
	if err := checkForm(o); err != nil {
		return err
	}
	if err := checkImports(o, offers); err != nil {
		return err
	}
	if err := checkMemory(o, memory); err != nil {
		return err
	}
	return checkExports(o)
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
	wasm, err := io.ReadAll(io.LimitReader(packed, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it starts like gzip but cannot be unpacked: %w", err)
	case len(wasm) > limit:
		return nil, tooBig
	}
	return wasm, nil
}

// checkForm refuses modules that are made to run by themselves.
func checkForm(o *outline) error {
	_, command := o.exports["_start"]
	_, reactor := o.exports["_initialize"]
	switch {
	case command && !reactor:
		return errors.New("it is built as a command, which runs once and ends: build with -buildmode=c-shared (Go) or as a reactor")
	case o.start:
		return errors.New("it has a start section, which runs before the host can bound it: export _initialize instead")
	}
	return nil
}

// checkImports refuses what the host does not offer, naming it and what is offered.
func checkImports(o *outline, offers []hostFunction) error {
	for _, i := range o.imports {
		name := i.module + "." + i.name
		at := slices.IndexFunc(offers, func(f hostFunction) bool { return f.module == i.module && f.name == i.name })
		switch {
		case i.kind != kindFunction:
			return fmt.Errorf("it imports %s, which is no function: memories, tables and globals must be its own", name)
		case at < 0:
			return fmt.Errorf("it imports %s, which the host does not offer; it offers %s", name, list(offers))
		}
		if got, _ := o.typeOf(i.typ); !got.equal(offers[at].signature) {
			return fmt.Errorf("it imports %s as %v, the host offers it as %v", name, got, offers[at].signature)
		}
	}
	return nil
}

// list names what the host offers, a module at a time.
func list(offers []hostFunction) string {
	var modules []string
	names := map[string][]string{}
	for _, f := range offers {
		if names[f.module] == nil {
			modules = append(modules, f.module)
		}
		names[f.module] = append(names[f.module], f.name)
	}
	for i, m := range modules {
		modules[i] = m + ": " + strings.Join(names[m], ", ")
	}
	return strings.Join(modules, "; ")
}

// checkMemory wants one memory, its own and exported, that starts below the limit.
func checkMemory(o *outline, limit uint64) error {
	e, there := o.exports["memory"]
	switch {
	case len(o.memories) > 1:
		return fmt.Errorf("it has %d memories, one is allowed", len(o.memories))
	case len(o.memories) == 0 || !there || e.kind != kindMemory:
		return errors.New("it lacks the export memory")
	}
	if least := o.memories[0].least; least > limit/pageSize {
		return fmt.Errorf("it starts with %d pages of memory, more than the limit of %d (%d bytes)", least, limit/pageSize, limit)
	}
	for _, t := range o.tables {
		if t.least > maxTable {
			return fmt.Errorf("it has a table of %d entries, more than the limit of %d", t.least, maxTable)
		}
	}
	return nil
}

// checkExports wants the functions of the contract, with their types.
func checkExports(o *outline) error {
	for _, e := range []struct {
		name     string
		typ      signature
		optional bool
	}{
		{hostabi.ExportABI, returning(i32), false},
		{hostabi.ExportAlloc, returning(i32, i32, i32), false},
		{hostabi.ExportError, returning(i64), false},
		{hostabi.ExportConfigure, returning(i64, i32, i32), true},
		{initialize, signature{}, true},
	} {
		if err := checkExport(o, e.name, e.typ, e.optional); err != nil {
			return err
		}
	}
	return nil
}

// checkHooks wants a function for each hook that the manifest names.
func checkHooks(o *outline, m hostabi.Manifest) error {
	for _, hook := range hooks() {
		if !m.Has(hook) {
			continue
		}
		if err := checkExport(o, exportOf(hook), returning(i64, i32, i32), false); err != nil {
			return fmt.Errorf("its manifest names the hook %v, but %w", hook, err)
		}
	}
	return nil
}

func checkExport(o *outline, name string, want signature, optional bool) error {
	_, there := o.exports[name]
	got, _ := o.function(name)
	switch {
	case !there && optional:
		return nil
	case !there:
		return fmt.Errorf("it lacks the export %s", name)
	case !got.equal(want):
		return fmt.Errorf("its export %s is %v, it must be %v", name, got, want)
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
