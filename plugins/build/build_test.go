package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// root is the folder of go.mod, seen from here.
const root = "../.."

// The committed modules are, byte for byte, what their source gives, and it gives the same in any folder.
func TestCommittedModulesAreWhatTheirSourceGives(t *testing.T) {
	requirePinnedToolchain(t)
	elsewhere := filepath.Join(t.TempDir(), "another", "folder")
	for _, folder := range []string{"hostabi", "sdk", "plugins"} {
		if err := os.CopyFS(filepath.Join(elsewhere, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(elsewhere, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-tags=whatever -ldflags=-s") // what a user has set must not matter
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-check", "-root", elsewhere}, &out); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"direct", "elastic"} {
		if !strings.Contains(out.String(), "  "+name+"  ") {
			t.Errorf("module %s was not compared:\n%s", name, out.String())
		}
	}
}

// requirePinnedToolchain skips the test with another Go than the one of go.mod: a test downloads no toolchain.
func requirePinnedToolchain(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "env", "GOVERSION")
	cmd.Dir = root
	version, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := pinned(root)
	if err != nil {
		t.Fatal(err)
	}
	if have := strings.TrimSpace(string(version)); have != want {
		t.Skipf("the modules are built by %s, as go.mod says; this is %s", want, have)
	}
}

// A module that differs from its source is named, with both digests; so are digests that nobody can trust.
func TestCheckNamesWhatDiffers(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "plugins", "modules"), 0o750); err != nil {
		t.Fatal(err)
	}
	old, now := fake("p", "old"), fake("p", "new")
	if err := write(folder, []module{old}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if err := compare(folder, []module{old}, &bytes.Buffer{}); err != nil {
		t.Errorf("what was just written differs: %v", err)
	}
	err := compare(folder, []module{now}, &bytes.Buffer{})
	for _, want := range []string{"p.wasm.gz: its digest is " + old.digest + ", its source gives " + now.digest, "modules.sum: its digests are not those"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	if err := compare(folder, []module{fake("q", "new")}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "q.wasm.gz") {
		t.Errorf("a module that is not there: %v", err)
	}
}

func fake(name, content string) module {
	return module{name, []byte(content), hostabi.Digest([]byte(content))}
}

// Wrong use is refused with what is right.
func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"direct"}, "there are no arguments but flags"},
		{[]string{"-root", t.TempDir()}, "run this in the folder of go.mod"},
	} {
		if err := run(t.Context(), c.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: the error is %v, want one with %q", c.args, err, c.want)
		}
	}
}

// A policy that does not compile, and one whose manifest is wrong, is named with what is wrong.
func TestBrokenPolicies(t *testing.T) {
	folder := t.TempDir()
	manifest := `{"name":"p","version":"1","abi":{"major":1,"minor":0},"hooks":["allocate"]}`
	files := map[string]string{
		"go.mod":                   "module example.com/x\n\ngo 1.26.0\n",
		"plugins/p/module/main.go": "package main\n\nfunc main() { nonsense }\n",
	}
	for _, c := range []struct{ manifest, want string }{
		{manifest, "building policy p: compiling ./plugins/p/module: exit status 1: "},
		{strings.Replace(manifest, `"p"`, `"q"`, 1), `its name is "q", that of the folder is right`},
		{strings.Replace(manifest, "allocate", "guess", 1), `"guess" is neither allocate nor release`},
	} {
		files["plugins/p/manifest.json"] = c.manifest
		for name, text := range files {
			path := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(t.Context(), []string{"-root", folder}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one with %q", err, c.want)
		}
	}
}
