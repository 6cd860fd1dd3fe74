package policy

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/retinue-sched/retinue/hostabi"
)

// cachedFiles returns the files of a cache with code in them.
func cachedFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// filled returns the folder of a cache in which there is a module.
func filled(t *testing.T, wasm []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "modules")
	h := newHost(t, func(c *Config) { c.CacheDir = dir })
	if _, err := h.Load(t.Context(), "mine", wasm); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(cachedFiles(t, dir)) == 0 {
		t.Fatal("nothing is kept")
	}
	return dir
}

// Whatever was done to a file in the cache, or left there, it is not run: the module is compiled anew.
func TestDamagedCacheIsNotRun(t *testing.T) {
	wasm := numbered(t, 3)
	for name, damage := range map[string]func(path string) error{
		"a bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[len(b)/2] ^= 0x10
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
		"cut":               func(path string) error { return os.Truncate(path, 20) },
		"empty":             func(path string) error { return os.Truncate(path, 0) },
		"nobody knows it":   func(path string) error { return os.Remove(filepath.Join(filepath.Dir(path), "..", sums)) },
		"left half written": func(path string) error { return os.WriteFile(path+".tmp", []byte("half"), 0o600) },
		"the list is damaged": func(path string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(path), "..", sums), []byte("\x00\x01  x\n\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t, wasm)
			for _, file := range cachedFiles(t, dir) {
				if err := damage(file); err != nil {
					t.Fatal(err)
				}
			}
			h := newHost(t, func(c *Config) { c.CacheDir = dir })
			if left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp")); err != nil || len(left) > 0 {
				t.Errorf("%v is left: %v", left, err)
			}
			bind(t, h, "shop/a", wasm)
			answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(9))
			if answer.Fault != "" || len(answer.Decision.Creates) != 1 || answer.Decision.Creates[0].Count != 3 {
				t.Errorf("answer %+v", answer)
			}
			known, err := h.engine.cache.read()
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range cachedFiles(t, dir) {
				name, err := filepath.Rel(dir, file)
				if sum, sumErr := h.engine.cache.sum(name); err != nil || sumErr != nil || known[name] != sum {
					t.Errorf("%s is not what is known of it: %v, %v", name, err, sumErr)
				}
			}
		})
	}
}

// A cache that takes nothing costs the time to compile at the next start, and nothing else.
func TestFullCacheIsDoneWithout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "modules")
	records := &tape{}
	h := startHost(t, records, sdkmetric.NewManualReader(), func(c *Config) { c.CacheDir = dir })
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders %v: %v", folders, err)
	}
	if err := errors.Join(os.Remove(folders[0]), os.WriteFile(folders[0], nil, 0o600)); err != nil { // no file can be made in what is none
		t.Fatal(err)
	}
	bind(t, h, "shop/a", numbered(t, 3))
	if got := asks(t, h, "shop/a"); got != "hostile" {
		t.Errorf("%s decides", got)
	}
	warned := records.of("compiled policy not cached: it is compiled again at the next start")
	if len(warned) != 1 || warned[0].level != slog.LevelWarn {
		t.Errorf("logged %+v", warned)
	}
	if _, err := h.Load(t.Context(), "broken", guest{bodies: map[string][]byte{hostabi.ExportAllocate: code(drop)}}.assemble(t)); err == nil ||
		!strings.Contains(err.Error(), "it does not compile: invalid function") {
		t.Errorf("error %v, want what is wrong with the module", err)
	}
}
