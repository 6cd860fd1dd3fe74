//go:build !wasip1

package hostabi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Manifest is what a module says of itself. It stands as JSON in the custom section ManifestSection and is read
// without running anything. (Modules are not compiled with this file: encoding/json is too big for them.)
type Manifest struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`  // where its source is
	Licence     string `json:"licence,omitempty"` // SPDX expression
	// ABI is the contract that the module was built for.
	ABI ABIRange `json:"abi"`
	// Hooks are the questions that it answers, at least one of "allocate" and "release".
	Hooks []string `json:"hooks"`
	// Columns says which columns of which table each hook reads: hook, table, columns. Only these are sent.
	// A hook or table that is missing here gets everything.
	Columns map[string]map[string][]string `json:"columns,omitempty"`
	// Settings is a JSON Schema of what retinue_configure takes.
	Settings json.RawMessage `json:"settings,omitempty"`
	// StateVersion is the version of the state that the module writes; 0 for one that keeps none.
	StateVersion uint32 `json:"state_version,omitempty"`
	// Limits are what the module wishes; the host may give less.
	Limits LimitWishes `json:"limits,omitzero"`
}

// ABIRange is a range of contract versions: from Major.Minor up to, not including, the next major one.
type ABIRange struct {
	Major uint16 `json:"major"`
	Minor uint16 `json:"minor"`
}

// Includes reports whether a host that speaks major.minor can run the module.
func (r ABIRange) Includes(major, minor uint16) bool { return r.Major == major && r.Minor <= minor }

// String returns the range in words.
func (r ABIRange) String() string {
	return fmt.Sprintf("%d.%d up to, not including, %d.0", r.Major, r.Minor, r.Major+1)
}

// LimitWishes are bounds that a module asks for; 0 is no wish.
type LimitWishes struct {
	MemoryBytes uint64 `json:"memory_bytes,omitempty"`
	Fuel        uint64 `json:"fuel,omitempty"` // ticks a call
}

// ErrNoManifest reports a module without a manifest section.
var ErrNoManifest = errors.New("the module has no custom section " + ManifestSection + "; hostabi.AppendManifest appends one")

// Validate returns everything that is wrong with m, joined.
func (m Manifest) Validate() error {
	var errs []error
	if m.Name == "" {
		errs = append(errs, errors.New("name: it is empty"))
	}
	if m.Version == "" {
		errs = append(errs, errors.New("version: it is empty"))
	}
	if m.ABI.Major == 0 {
		errs = append(errs, errors.New("abi: major is missing"))
	}
	if len(m.Hooks) == 0 {
		errs = append(errs, errors.New("hooks: there is none, name allocate, release or both"))
	}
	for i, h := range m.Hooks {
		if !knownHook(h) {
			errs = append(errs, fmt.Errorf("hooks: entry %d: %q is neither allocate nor release", i, h))
		}
	}
	for _, h := range sortedKeys(m.Columns) {
		if _, err := m.projection(h); err != nil {
			errs = append(errs, err)
		}
	}
	if len(m.Settings) > 0 && !json.Valid(m.Settings) {
		errs = append(errs, errors.New("settings: it is not JSON"))
	}
	return errors.Join(errs...)
}

// Has reports whether the module answers hook h.
func (m Manifest) Has(h Hook) bool {
	return slices.Contains(m.Hooks, h.String())
}

// Projection returns the columns that hook h reads. The error names a table or column that this version
// does not know.
func (m Manifest) Projection(h Hook) (Projection, error) { return m.projection(h.String()) }

func (m Manifest) projection(hook string) (Projection, error) {
	var p Projection
	if !knownHook(hook) {
		return p, fmt.Errorf("columns: %q is neither allocate nor release", hook)
	}
	for _, table := range sortedKeys(m.Columns[hook]) {
		s := viewTable(table)
		if s == nil {
			return p, fmt.Errorf("columns: %s: %q is none of decision, profiles and executors", hook, table)
		}
		p = p.With(s.id)
		for _, c := range m.Columns[hook][table] {
			id, ok := s.columnNamed(c)
			if !ok {
				return p, fmt.Errorf("columns: %s: table %s has no column %q", hook, table, c)
			}
			p = p.With(s.id, id)
		}
	}
	return p, nil
}

// knownHook reports whether a hook has the name.
func knownHook(s string) bool { return s == HookAllocate.String() || s == HookRelease.String() }

// viewTable returns the table of a view with the given name, or nil.
func viewTable(s string) *schema {
	for _, id := range []TableID{TableDecision, TableProfiles, TableExecutors} {
		if t := schemaOf(id); t.name == s {
			return t
		}
	}
	return nil
}

// ColumnNamed returns the column with the given name.
func (s *schema) columnNamed(column string) (ColumnID, bool) {
	for i := range s.columns {
		if s.columns[i].name == column {
			return s.columns[i].id, true
		}
	}
	return 0, false
}

// ParseManifest reads a manifest's JSON. Unknown keys are an error: a mistyped one would be a wish unheard.
func ParseManifest(text []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Manifest{}, errors.New("reading the manifest: something follows the JSON object")
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, fmt.Errorf("checking the manifest: %w", err)
	}
	return m, nil
}

// ReadManifest returns the manifest of a WebAssembly module. The error is ErrNoManifest if there is none.
func ReadManifest(module []byte) (Manifest, error) {
	var found [][]byte
	err := customSections(module, func(name string, payload []byte) {
		if name == ManifestSection {
			found = append(found, payload)
		}
	})
	switch {
	case err != nil:
		return Manifest{}, fmt.Errorf("looking for the manifest: %w", err)
	case len(found) == 0:
		return Manifest{}, ErrNoManifest
	case len(found) > 1:
		return Manifest{}, fmt.Errorf("looking for the manifest: there are %d sections %s, one is right", len(found), ManifestSection)
	case len(found[0]) > MaxManifestSize:
		return Manifest{}, fmt.Errorf("reading the manifest: it has %d bytes, more than the limit of %d", len(found[0]), MaxManifestSize)
	}
	return ParseManifest(found[0])
}

// AppendManifest returns a copy of module that ends with the manifest. A module that has one is refused.
func AppendManifest(module []byte, m Manifest) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("checking the manifest: %w", err)
	}
	if _, err := ReadManifest(module); !errors.Is(err, ErrNoManifest) {
		if err == nil {
			err = errors.New("the module has one already")
		}
		return nil, fmt.Errorf("appending the manifest: %w", err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	if len(text) > MaxManifestSize {
		return nil, fmt.Errorf("writing the manifest: it has %d bytes, more than the limit of %d", len(text), MaxManifestSize)
	}
	out := append(make([]byte, 0, len(module)+len(text)+32), module...)
	return appendCustomSection(out, ManifestSection, text), nil
}
