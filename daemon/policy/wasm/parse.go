package wasm

import "errors"

// Parse reads a module and judges it. The error is one sentence about the module, which starts with "it".
func Parse(b []byte, limits Limits) (*Module, error) {
	return nil, errors.New("it cannot be read yet")
}

func printable(s string) string { return s }
