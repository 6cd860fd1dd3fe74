package wasm

import (
	"fmt"
	"slices"
	"strings"
)

// Offer is a function that a host offers to modules.
type Offer struct {
	Module, Name string
	Signature
}

// Want is something that a host wants a module to export.
type Want struct {
	Name string
	Kind Kind
	Signature
	Optional bool
}

// mostGaps is how many gaps of a kind are named.
const mostGaps = 5

// CompareImports holds what the module needs against what a host offers. There is one sentence for all that is not offered, and one for each import
// that is offered as something else, of which the first few are named.
func (m *Module) CompareImports(offers []Offer) []error {
	var gaps []error
	var unknown []string
	for _, i := range m.Imports {
		name, typ := i.Module+"."+i.Name, m.Types[i.Type]
		at := slices.IndexFunc(offers, func(o Offer) bool { return o.Module == i.Module && o.Name == i.Name })
		switch {
		case at < 0:
			unknown = append(unknown, printable(name))
		case !typ.Equal(offers[at].Signature) && len(gaps) < mostGaps:
			gaps = append(gaps, fmt.Errorf("it imports %s as %v, the host offers it as %v", name, typ, offers[at].Signature))
		}
	}
	if len(unknown) > 0 {
		gaps = append(gaps, fmt.Errorf("it imports %s, which the host does not offer; it offers %s", some(unknown), list(offers)))
	}
	return gaps
}

// some names the first few, and says how many more there are.
func some(names []string) string {
	if more := len(names) - mostGaps; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostGaps], ", "), more)
	}
	return strings.Join(names, ", ")
}

// CompareExports holds what the module offers against what a host wants. There is one sentence for each export that is missing or
// another than it must be.
func (m *Module) CompareExports(wants []Want) []error {
	var gaps []error
	for _, want := range wants {
		e, there := m.Exported(want.Name)
		switch {
		case !there && want.Optional:
		case !there:
			gaps = append(gaps, fmt.Errorf("it lacks the export %s", want.Name))
		case e.Kind != want.Kind:
			gaps = append(gaps, fmt.Errorf("its export %s is a %v, it must be a %v", want.Name, e.Kind, want.Kind))
		case want.Kind == KindFunction && !m.TypeOf(e.Index).Equal(want.Signature):
			gaps = append(gaps, fmt.Errorf("its export %s is %v, it must be %v", want.Name, m.TypeOf(e.Index), want.Signature))
		}
	}
	return gaps
}

// list names what a host offers, a module at a time.
func list(offers []Offer) string {
	var modules []string
	names := map[string][]string{}
	for _, o := range offers {
		if names[o.Module] == nil {
			modules = append(modules, o.Module)
		}
		names[o.Module] = append(names[o.Module], o.Name)
	}
	for i, m := range modules {
		modules[i] = m + ": " + strings.Join(names[m], ", ")
	}
	return strings.Join(modules, "; ")
}
