package hostabi_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/hostabi"
)

const emptyModule = "\x00asm\x01\x00\x00\x00"

func goodManifest() hostabi.Manifest {
	return hostabi.Manifest{
		Name: "first-fit", Version: "1.2.3", Description: "d", Source: "s", Licence: "MIT",
		ABI: hostabi.ABIRange{Major: 1}, Hooks: []string{"allocate"},
		Columns:      map[string]map[string][]string{"allocate": {"executors": {"id", "phase"}, "decision": {}}},
		Settings:     json.RawMessage(`{"type":"object"}`),
		StateVersion: 2, Limits: hostabi.LimitWishes{MemoryBytes: 32 << 20},
	}
}

// A manifest comes back from the module that it was appended to, behind whatever other sections there are.
func TestManifestComesBack(t *testing.T) {
	other := emptyModule + "\x00\x05\x04name" + "\x01\x04\x01\x60\x00\x00"
	module, err := hostabi.AppendManifest([]byte(other), goodManifest())
	if err != nil {
		t.Fatal(err)
	}
	got, err := hostabi.ReadManifest(module)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goodManifest(), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := hostabi.AppendManifest(module, goodManifest()); err == nil {
		t.Error("a second manifest was appended")
	}
}

// A manifest says which columns a hook is sent; what it does not name is sent whole.
func TestManifestProjection(t *testing.T) {
	p, err := goodManifest().Projection(hostabi.HookAllocate)
	if err != nil {
		t.Fatal(err)
	}
	want := hostabi.Projection{}.With(hostabi.TableExecutors, hostabi.ExecutorsID, hostabi.ExecutorsPhase).With(hostabi.TableDecision)
	if p != want {
		t.Errorf("the projection is %v, want %v", p, want)
	}
	if !p.Keeps(hostabi.TableProfiles, hostabi.ProfilesTarget) || p.Keeps(hostabi.TableExecutors, hostabi.ExecutorsCost) || p.Keeps(hostabi.TableDecision, hostabi.DecisionID) {
		t.Error("it keeps the wrong columns")
	}
	if p, err := goodManifest().Projection(hostabi.HookRelease); err != nil || p != (hostabi.Projection{}) {
		t.Errorf("a hook without columns gets %v, %v, want everything", p, err)
	}
}

// Each fault of a manifest is refused with what is wrong.
func TestManifestFaults(t *testing.T) {
	for _, c := range []struct {
		name, json, want string
	}{
		{"not JSON", `{`, "unexpected EOF"},
		{"unknown key", `{"nome":"x"}`, `unknown field "nome"`},
		{"two objects", `{"name":"x","version":"1","abi":{"major":1},"hooks":["allocate"]} {}`, "something follows"},
		{"no name", `{"version":"1","abi":{"major":1},"hooks":["allocate"]}`, "name: it is empty"},
		{"no ABI", `{"name":"x","version":"1","hooks":["allocate"]}`, "abi: major is missing"},
		{"no hook", `{"name":"x","version":"1","abi":{"major":1}}`, "hooks: there is none"},
		{"unknown hook", `{"name":"x","version":"1","abi":{"major":1},"hooks":["reap"]}`, `"reap" is neither`},
		{"unknown table", `{"name":"x","version":"1","abi":{"major":1},"hooks":["release"],"columns":{"release":{"pods":["id"]}}}`, `"pods" is none of`},
		{"unknown column", `{"name":"x","version":"1","abi":{"major":1},"hooks":["release"],"columns":{"release":{"executors":["uid"]}}}`, `no column "uid"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := hostabi.ParseManifest([]byte(c.json)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

// Bytes that are no module, or a module without a manifest or with a broken section, are refused each in its way.
func TestManifestOfBrokenModules(t *testing.T) {
	if _, err := hostabi.ReadManifest([]byte("#!/bin/sh")); !errors.Is(err, hostabi.ErrNotWasm) {
		t.Errorf("a script: %v", err)
	}
	if _, err := hostabi.ReadManifest([]byte(emptyModule)); !errors.Is(err, hostabi.ErrNoManifest) {
		t.Errorf("no manifest: %v", err)
	}
	if _, err := hostabi.ReadManifest([]byte(emptyModule + "\x01\x7f\x00")); err == nil || !strings.Contains(err.Error(), "section 1 at byte 8: its length is 127, only 1 bytes follow") {
		t.Errorf("a cut section: %v", err)
	}
	module, err := hostabi.AppendManifest([]byte(emptyModule), goodManifest())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostabi.ReadManifest(append(module, module[len(emptyModule):]...)); err == nil || !strings.Contains(err.Error(), "there are 2 sections") {
		t.Errorf("two manifests: %v", err)
	}
}

// A module built for 1.1 runs on 1.1 and 1.7, not on 1.0 or 2.1.
func TestABIRange(t *testing.T) {
	r := hostabi.ABIRange{Major: 1, Minor: 1}
	if !r.Includes(1, 1) || !r.Includes(1, 7) || r.Includes(1, 0) || r.Includes(2, 1) {
		t.Errorf("%v includes the wrong versions", r)
	}
}
