package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/retinue-sched/retinue/hostabi"
)

// noSettings is what a module gets when nothing is set.
const noSettings = "{}"

// Binding says who decides.
type Binding struct {
	Policy   string // a name, or a digest as "sha256:..."
	Settings string // a JSON object; empty is an empty one
}

// settings returns the binding's settings in their shortest form.
func (b Binding) settings() (string, error) {
	text := []byte(b.Settings)
	if len(bytes.TrimSpace(text)) == 0 {
		return noSettings, nil
	}
	if len(text) > hostabi.MaxSettingsSize {
		return "", fmt.Errorf("the settings have %d bytes, more than the limit of %d", len(text), hostabi.MaxSettingsSize)
	}
	var short bytes.Buffer
	if err := json.Compact(&short, text); err != nil {
		return "", fmt.Errorf("the settings are not JSON: %w", err)
	}
	if short.Bytes()[0] != '{' {
		return "", errors.New("the settings are JSON, but not an object: write {\"key\": value}")
	}
	return short.String(), nil
}

// generation is one policy with one set of settings, deciding for one application. It has at most one instance, made when it is
// first needed and after each fault.
type generation struct {
	policy   string // the name that it was bound by
	module   *module
	settings string
	// slot holds the instance, or nil while there is none. Who takes it out is the only one to use it, and puts one back. It is
	// closed when the generation is retired.
	slot chan *instance
}

// newGeneration takes over the caller's hold on the module.
func newGeneration(policy string, m *module, settings string, i *instance) *generation {
	g := &generation{policy: policy, module: m, settings: settings, slot: make(chan *instance, 1)}
	g.slot <- i
	return g
}

// same reports whether g is what a binding asks for.
func (g *generation) same(m *module, settings string) bool {
	return g != nil && g.module == m && g.settings == settings
}
