package wasm

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NameSection is the custom section in which compilers write down what functions are called.
const NameSection = "name"

// functionNames is the part of it that holds the functions' names.
const functionNames = 1

// NameOf returns what a function is called, if the module says: the index counts the imported ones first.
func (m *Module) NameOf(function uint32) string { return m.names[function] }

// describe names a function for people.
func (m *Module) describe(function int) string {
	if name := m.names[uint32(function)]; name != "" {
		return fmt.Sprintf("function %d (%s)", function, printable(name))
	}
	return fmt.Sprintf("function %d", function)
}

// readNames reads the functions' names. They are for people only, so what is wrong with them ends the reading and nothing else.
func (d *decoder) readNames() {
	section, there := d.Section(NameSection)
	if !there {
		return
	}
	d.names = map[uint32]string{}
	r := &reader{b: section}
	for !r.done() {
		id := r.byte()
		part := &reader{b: r.bytes(r.u32())}
		if id != functionNames || r.err != nil {
			continue
		}
		next := uint64(0)
		part.each(func() {
			index, name := part.u32(), part.text()
			if uint64(index) < next || int64(index) >= int64(d.functionCount()) {
				part.fail(errNumber) // they are in order, so there are not more than functions
			}
			if part.err == nil {
				d.names[index] = name
			}
			next = uint64(index) + 1
		})
		return
	}
}

// maxName is how many characters of a name are shown.
const maxName = 120

// printable makes one short line of what a module calls something.
func printable(name string) string {
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName]) + "…"
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) || name == "" {
		return strconv.Quote(name)
	}
	return name
}
