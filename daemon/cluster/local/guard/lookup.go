package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lookUp finds the program of a spec, or says in a container runtime's words why it cannot be run.
func lookUp(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", errors.New("no command specified")
	}
	if info, err := os.Stat(spec.Dir); err != nil {
		return "", fmt.Errorf("chdir to cwd (%q) set in config.json failed: %w", spec.Dir, reason(err))
	} else if !info.IsDir() {
		return "", fmt.Errorf("chdir to cwd (%q) set in config.json failed: not a directory", spec.Dir)
	}
	name := spec.Argv[0]
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(spec.Dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("exec: %q: %w", name, err)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(pathOf(spec.Env)) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("stat %s: %w", path, reason(err))
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New("permission denied")
	}
	return nil
}

// reason is an error without the path that the caller names itself.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// pathOf returns the last PATH of an environment, which is the one that counts.
func pathOf(env []string) string {
	for _, variable := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			return value
		}
	}
	return ""
}
