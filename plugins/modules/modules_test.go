package modules_test

import (
	"slices"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/plugins/modules"
)

// Each shipped module is there, is what its digest names, and carries a manifest of its name.
func TestShippedModules(t *testing.T) {
	var names []string
	for _, m := range modules.Shipped() {
		names = append(names, m.Name)
		wasm, err := m.Wasm()
		if err != nil {
			t.Fatal(err)
		}
		if d := hostabi.Digest(wasm); d != m.Digest {
			t.Errorf("%s: the digest is %s, want %s", m.Name, d, m.Digest)
		}
		manifest, err := hostabi.ReadManifest(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Name != m.Name || !manifest.ABI.Includes(hostabi.ABIMajor, hostabi.ABIMinor) {
			t.Errorf("%s: the manifest is %+v", m.Name, manifest)
		}
	}
	if want := []string{"direct", "elastic"}; !slices.Equal(names, want) {
		t.Errorf("the modules are %v, want %v", names, want)
	}
}

// A module is found by its name, and none by another; bytes that are not those of the digest are refused.
func TestNamed(t *testing.T) {
	m, ok := modules.Named("elastic")
	if !ok || m.Name != "elastic" {
		t.Errorf("got %+v, %v", m, ok)
	}
	if _, ok := modules.Named("../direct"); ok {
		t.Error("there is a module ../direct")
	}
	m.Digest = "sha256:00"
	if _, err := m.Wasm(); err == nil {
		t.Error("bytes of another digest were given out")
	}
}
