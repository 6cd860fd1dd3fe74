package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/retinue-sched/retinue/hostabi"
)

// module is a policy as it was built.
type module struct {
	name   string
	wasm   []byte // with its manifest
	digest string
}

// buildAll builds every shipped policy, sorted by name.
func buildAll(ctx context.Context, root string) ([]module, error) {
	manifests, err := filepath.Glob(filepath.Join(root, "plugins", "*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		return nil, fmt.Errorf("looking for policies: there is no plugins/*/manifest.json in %s, run this in the folder of go.mod", root)
	}
	var built []module
	for _, path := range manifests {
		m, err := build(ctx, root, filepath.Base(filepath.Dir(path)), path)
		if err != nil {
			return nil, err
		}
		built = append(built, m)
	}
	return built, nil
}

// build compiles one policy and appends its manifest.
func build(ctx context.Context, root, name, manifest string) (module, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return module{}, fmt.Errorf("building policy %s: %w", name, err)
	}
	parsed, err := hostabi.ParseManifest(text)
	if err != nil {
		return module{}, fmt.Errorf("building policy %s: %s: %w", name, manifest, err)
	}
	if parsed.Name != name {
		return module{}, fmt.Errorf("building policy %s: %s: its name is %q, that of the folder is right", name, manifest, parsed.Name)
	}
	code, err := compile(ctx, root, "./plugins/"+name+"/module")
	if err != nil {
		return module{}, fmt.Errorf("building policy %s: %w", name, err)
	}
	wasm, err := hostabi.AppendManifest(code, parsed)
	if err != nil {
		return module{}, fmt.Errorf("building policy %s: %w", name, err)
	}
	return module{name, wasm, hostabi.Digest(wasm)}, nil
}

// compile returns the module that the go tool makes of a main package.
func compile(ctx context.Context, root, pkg string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "policy-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the module: %w", err)
	}
	defer os.RemoveAll(folder)
	toolchain, err := pinned(root)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "policy.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-o", file, pkg)
	cmd.Dir = root
	cmd.Env = environment(os.Environ(), toolchain)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s: %w: %s", pkg, err, bytes.TrimSpace(said))
	}
	return os.ReadFile(file)
}

// pinned returns the toolchain that go.mod names, "" if it names none. A newer one gives other bytes, so the go tool
// is told to be this one, even if it has to be downloaded.
func pinned(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("looking for the toolchain: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "toolchain "); ok {
			return name, nil
		}
	}
	return "", nil
}

// environment returns env without what changes the code that the go tool makes. GOFLAGS is set to something
// harmless, not emptied: an empty one would let the go tool's own configuration file speak.
func environment(env []string, toolchain string) []string {
	fixed := []string{
		"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off",
		"GOWASM=", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
	}
	if toolchain != "" {
		fixed = append(fixed, "GOTOOLCHAIN="+toolchain)
	}
	var kept []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		if !named(fixed, name) {
			kept = append(kept, pair)
		}
	}
	return append(kept, fixed...)
}

// named reports whether pairs set the variable.
func named(pairs []string, variable string) bool {
	for _, p := range pairs {
		if strings.HasPrefix(p, variable+"=") {
			return true
		}
	}
	return false
}

// write replaces what is committed.
func write(root string, built []module, out io.Writer) error {
	for _, m := range built {
		packed, err := pack(m.wasm)
		if err != nil {
			return fmt.Errorf("packing policy %s: %w", m.name, err)
		}
		if err := os.WriteFile(packedFile(root, m.name), packed, 0o644); err != nil {
			return fmt.Errorf("writing policy %s: %w", m.name, err)
		}
		fmt.Fprintf(out, "%s  %s  %d bytes, %d packed\n", m.digest, m.name, len(m.wasm), len(packed))
	}
	if err := os.WriteFile(sumFile(root), []byte(sums(built)), 0o644); err != nil {
		return fmt.Errorf("writing the digests: %w", err)
	}
	return nil
}

// compare reports each module, and as an error those that differ from what is committed.
func compare(root string, built []module, out io.Writer) error {
	var errs []error
	for _, m := range built {
		wasm, err := unpacked(packedFile(root, m.name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if d := hostabi.Digest(wasm); d != m.digest {
			errs = append(errs, fmt.Errorf("comparing %s: its digest is %s, its source gives %s; run `make plugins` and commit the result",
				packedFile(root, m.name), d, m.digest))
			continue
		}
		fmt.Fprintf(out, "%s  %s  %d bytes\n", m.digest, m.name, len(m.wasm))
	}
	committed, err := os.ReadFile(sumFile(root))
	if err == nil && string(committed) != sums(built) {
		err = fmt.Errorf("comparing %s: its digests are not those of the modules; run `make plugins` and commit the result", sumFile(root))
	}
	return errors.Join(append(errs, err)...)
}

// sums returns the digests of modules as plugins/modules reads them.
func sums(built []module) string {
	var lines strings.Builder
	for _, m := range built {
		fmt.Fprintf(&lines, "%s  %s\n", m.digest, m.name)
	}
	return lines.String()
}

// pack compresses b so that the same bytes always give the same result.
func pack(b []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression) // no time, no name in the header
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// unpacked returns what a packed file holds.
func unpacked(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a module: %w", err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	return wasm, nil
}

// packedFile returns where a module is committed.
func packedFile(root, name string) string {
	return filepath.Join(root, "plugins", "modules", name+".wasm.gz")
}

// sumFile returns where the digests are committed.
func sumFile(root string) string { return filepath.Join(root, "plugins", "modules", "modules.sum") }
