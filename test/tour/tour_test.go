// Package tour runs the README's tour as a reader would.
package tour

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The tour in the README works as it stands: every command, in one shell, from the root of the tree.
func TestTour(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs and runs a fleet; left out with -short")
	}
	for _, tool := range []string{"make", "sh", "seq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tour needs %s: %v", tool, err)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			text, err := os.ReadFile(filepath.Join(root, "README.md"))
			if err != nil {
				return err
			}
			// Where the tour breaks off, what it started must end: the daemon holds the script's output open.
			script := "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true; bin/retinue local down >/dev/null || true' EXIT\n" + tour(t, string(text))
			for _, name := range []string{"PATH", "HOME", "GOFLAGS", "GOPROXY", "GOCACHE", "GOMODCACHE", "GOPATH", "GOTOOLCHAIN", "GONOSUMDB", "GOSUMDB"} {
				if value, set := os.LookupEnv(name); set {
					env.Setenv(name, value)
				}
			}
			env.Setenv("ROOT", root)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "s"))
			env.Setenv("XDG_RUNTIME_DIR", "")
			env.Setenv("RETINUE_TELEMETRY__ADDRESS", "127.0.0.1:0") // another daemon may have the usual port
			return os.WriteFile(filepath.Join(env.WorkDir, "tour.sh"), []byte(script), 0o644)
		},
	})
}

// tour is the shell block under the README's tour.
func tour(t *testing.T, readme string) string {
	_, rest, found := strings.Cut(readme, "## Five minutes with it")
	_, block, fenced := strings.Cut(rest, "```sh\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !fenced || !closed {
		t.Fatal("the README has no tour: a block of sh under \"Five minutes with it\"")
	}
	return block + "\n"
}
