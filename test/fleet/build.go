package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// module is where the programs are.
const module = "github.com/retinue-sched/retinue/"

// Build builds programs into a folder as `make build` does, so that what was built before is not built again. It must be called somewhere in the
// module. Programs are packages below the module's root.
func Build(ctx context.Context, bin string, programs ...string) error {
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	args := []string{"build", "-trimpath", "-o", bin + string(os.PathSeparator)}
	for _, p := range programs {
		args = append(args, module+p)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %v: %w: %s", programs, err, bytes.TrimSpace(text))
	}
	return nil
}
