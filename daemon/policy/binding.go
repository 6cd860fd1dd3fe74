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
	// Mode is how far the policy's word goes. The host does not look at it: it keeps it so that a rollback can bring it back.
	Mode string `koanf:"-"`
	// Before is how far the word of the policy goes that decides until now: what a rollback brings back if nobody chose that one.
	Before string `koanf:"-"`
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

// generation is one policy with one set of settings, deciding for one application.
type generation struct {
	policy string // the name that it was bound by
	pool   *pool
	mode   string // held by the binding's lock
}

// same reports whether g is what a binding asks for.
func (g *generation) same(m *module, settings string) bool {
	return g != nil && g.pool.module == m && g.pool.settings == settings
}
