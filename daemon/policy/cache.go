package policy

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
)

const (
	// sums is the file in the cache's folder that says what the others must hold, as sha256sum writes it. What is in the cache is run as it is, so
	// nothing is left there of which that is not known: a bit that is wrong in machine code may do anything.
	sums = "SHA256SUMS"
	// mostCached is how many bytes the cache keeps: what was written first goes first.
	mostCached = 512 << 20
)

// cache is compiled modules in a folder, or in memory if dir is empty.
type cache struct {
	wazero.CompilationCache
	dir string
}

// openCache opens the cache in a folder, which it makes. What is in it is run, so nobody else may write there.
func openCache(dir string) (cache, error) {
	if dir == "" {
		return cache{CompilationCache: wazero.NewCompilationCache()}, nil
	}
	wrap := func(err error) error { return fmt.Errorf("opening the cache for compiled policies: %w", err) }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cache{}, wrap(err)
	}
	if err := ownedAlone(dir); err != nil {
		return cache{}, wrap(err)
	}
	c := cache{dir: dir}
	if err := c.clean(); err != nil {
		return cache{}, wrap(err)
	}
	var err error
	if c.CompilationCache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return cache{}, wrap(err)
	}
	return c, nil
}

// ownedAlone refuses a folder in which others may write.
func ownedAlone(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("others may write to %s, and what it holds is run: chmod go-w it, or name another folder", path)
		}
		return err
	})
}

// clean removes the files that are not what they were, that nobody took down, and, while there are too many bytes, the oldest.
func (c cache) clean() error {
	known, there, err := c.contents()
	if err != nil {
		return err
	}
	slices.SortFunc(there, func(a, b cached) int { return b.written.Compare(a.written) })
	total := int64(0)
	for _, f := range there {
		sum, err := c.sum(f.name)
		if total += f.size; err == nil && sum == known[f.name] && total <= mostCached {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, f.name)); err != nil {
			return err
		}
	}
	return nil
}

// record takes down what the cache holds, after something was added.
func (c cache) record() error {
	if c.dir == "" {
		return nil
	}
	known, there, err := c.contents()
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, f := range there {
		if now[f.name] = known[f.name]; now[f.name] == "" {
			if now[f.name], err = c.sum(f.name); err != nil {
				return err
			}
		}
	}
	if maps.Equal(known, now) {
		return nil
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(&list, "%s  %s\n", now[name], name)
	}
	half := filepath.Join(c.dir, sums+".new")
	if err := os.WriteFile(half, []byte(list.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(half, filepath.Join(c.dir, sums))
}

// cached is a file in the cache.
type cached struct {
	name    string // in the folder
	size    int64
	written time.Time
}

// contents returns the sums that were taken down, by name, and the files that are there.
func (c cache) contents() (known map[string]string, there []cached, err error) {
	if known, err = c.read(); err != nil {
		return nil, nil, err
	}
	there, err = c.files()
	return known, there, err
}

// files lists the files in the cache, other than the list of sums.
func (c cache) files() (list []cached, err error) {
	err = filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) == sums {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(c.dir, path)
		list = append(list, cached{name, info.Size(), info.ModTime()})
		return err
	})
	return list, err
}

// read returns the sums that were taken down, by name.
func (c cache) read() (map[string]string, error) {
	known := map[string]string{}
	file, err := os.Open(filepath.Join(c.dir, sums))
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok {
			known[name] = sum
		}
	}
	return known, lines.Err()
}

func (c cache) sum(name string) (string, error) {
	file, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
