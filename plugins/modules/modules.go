// Package modules holds the policies that ship with the daemon, as WebAssembly modules with their manifests, so
// that a plain build of the daemon runs its default policy in the sandbox.
//
// It promises that a module's bytes are those that its digest names.
package modules

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/retinue-sched/retinue/hostabi"
)

// files holds the modules, compressed, and modules.sum, which has a line for each, sorted by name: the digest of
// its uncompressed bytes, two spaces and the name. plugins/build writes both.
//
//go:embed *.wasm.gz modules.sum
var files embed.FS

// Module is a shipped policy.
type Module struct {
	Name   string
	Digest string // "sha256:" and 64 hexadecimal digits, of what Wasm returns
}

// Shipped returns the modules, sorted by name.
func Shipped() []Module {
	sum, _ := files.ReadFile("modules.sum") // it is embedded by name: it can be read
	var list []Module
	for line := range strings.Lines(string(sum)) {
		digest, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		list = append(list, Module{name, digest})
	}
	return list
}

// Named returns the module with the given name, and whether there is one.
func Named(name string) (Module, bool) {
	for _, m := range Shipped() {
		if m.Name == name {
			return m, true
		}
	}
	return Module{}, false
}

// Wasm returns the module's bytes. The error tells that they are not those of its digest.
func (m Module) Wasm() ([]byte, error) {
	packed, err := files.ReadFile(m.Name + ".wasm.gz")
	if err != nil {
		return nil, fmt.Errorf("reading module %s: %w", m.Name, err)
	}
	wasm, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking module %s: %w", m.Name, err)
	}
	if d := hostabi.Digest(wasm); d != m.Digest {
		return nil, fmt.Errorf("unpacking module %s: its digest is %s, not %s; `make plugins` builds it again", m.Name, d, m.Digest)
	}
	return wasm, nil
}

// unpack undoes gzip.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
