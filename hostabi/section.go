//go:build !wasip1

package hostabi

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrNotWasm reports bytes that are no core WebAssembly module.
var ErrNotWasm = errors.New("it is not a WebAssembly module (a module starts with \\0asm and version 1)")

// Digest returns the name of a module's bytes: "sha256:" and 64 hexadecimal digits.
func Digest(module []byte) string {
	sum := sha256.Sum256(module)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// wasmHeader is how every core module starts.
const wasmHeader = "\x00asm\x01\x00\x00\x00"

// customSections calls visit with the name and the content of each custom section of module, in order.
// The content is a slice of module.
func customSections(module []byte, visit func(name string, payload []byte)) error {
	if len(module) < len(wasmHeader) || string(module[:len(wasmHeader)]) != wasmHeader {
		return ErrNotWasm
	}
	for at := len(wasmHeader); at < len(module); {
		id := module[at]
		body, next, err := sized(module, at+1)
		if err != nil {
			return fmt.Errorf("section %d at byte %d: %w", id, at, err)
		}
		if id == 0 {
			name, rest, err := sized(body, 0)
			if err != nil {
				return fmt.Errorf("name of the custom section at byte %d: %w", at, err)
			}
			visit(string(name), body[rest:])
		}
		at = next
	}
	return nil
}

// sized returns the bytes whose length stands at at, and where they end.
func sized(b []byte, at int) (content []byte, end int, err error) {
	size, n := binary.Uvarint(b[at:])
	if n <= 0 || n > 5 {
		return nil, 0, errors.New("its length is not a number of at most 5 bytes")
	}
	at += n
	if size > uint64(len(b)-at) {
		return nil, 0, fmt.Errorf("its length is %d, only %d bytes follow", size, len(b)-at)
	}
	return b[at : at+int(size)], at + int(size), nil
}

// appendCustomSection appends a custom section to a module.
func appendCustomSection(module []byte, name string, payload []byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), payload...)
	module = binary.AppendUvarint(append(module, 0), uint64(len(body)))
	return append(module, body...)
}

// sortedKeys returns the keys of m in order, so that the order of a map reaches no error text.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
