package executor

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// place is where an attempt's program runs.
type place struct {
	folder string
	own    bool // made for the attempt, and to be removed with all that is in it
	made   []string
}

// prepare makes the folder that the program starts in, with the files it asked for. An error says what is wrong with the task.
func (a *Agent) prepare(att *attempt) (*place, error) {
	p := &place{folder: att.spec.GetDirectory()}
	if p.folder == "" {
		p.own = true
		p.folder = filepath.Join(a.folder, fmt.Sprintf("task-%d-%d", att.ref.task, att.ref.attempt))
		_ = os.RemoveAll(p.folder) // left behind by a process that was killed
		if err := os.Mkdir(p.folder, 0o700); err != nil {
			return p, fmt.Errorf("making the work folder on executor %d: %w", a.cfg.Executor, err)
		}
	} else if info, err := os.Stat(p.folder); err != nil || !info.IsDir() {
		return p, invalidf("no such folder %q on executor %d", p.folder, a.cfg.Executor)
	}
	for _, f := range att.spec.GetFiles() {
		if err := a.link(p, f); err != nil {
			return p, err
		}
	}
	return p, nil
}

// link makes a file visible.
func (a *Agent) link(p *place, f *apiv1.FileRef) error {
	if !filepath.IsLocal(f.GetName()) {
		return invalidf("file %q would be outside of the working directory", f.GetName())
	}
	if _, err := os.Stat(f.GetPath()); err != nil {
		return invalidf("file %q: %q cannot be read on executor %d: %v", f.GetName(), f.GetPath(), a.cfg.Executor, err)
	}
	name := filepath.Join(p.folder, f.GetName())
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return invalidf("file %q cannot be made visible on executor %d: %v", f.GetName(), a.cfg.Executor, err)
	}
	if err := os.Symlink(f.GetPath(), name); err != nil {
		return invalidf("file %q cannot be made visible on executor %d: %v", f.GetName(), a.cfg.Executor, err)
	}
	p.made = append(p.made, name)
	return nil
}

// clear removes what prepare made.
func (a *Agent) clear(life context.Context, p *place) {
	if !p.own {
		for _, name := range p.made {
			_ = os.Remove(name) // the program may have done so
		}
		return
	}
	if os.RemoveAll(p.folder) == nil {
		return
	}
	openUp(p.folder)
	if err := os.RemoveAll(p.folder); err != nil {
		a.log.LogAttrs(life, slog.LevelWarn, "work folder stays behind", slog.String("folder", p.folder), slog.Any("error", err))
	}
}

// openUp makes every folder of a tree writable: programs leave folders that they took the rights from.
func openUp(root string) {
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
}

// diskUse adds up the sizes of the files in the work folder, of the first few thousand: it is a sign, not an account.
func (a *Agent) diskUse() uint64 {
	const most = 4096
	var total uint64
	seen := 0
	_ = filepath.WalkDir(a.folder, func(_ string, entry fs.DirEntry, err error) error {
		if seen++; seen > most {
			return fs.SkipAll
		}
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				total += uint64(info.Size())
			}
		}
		return nil
	})
	return total
}

// heartbeat is a sign of life with the use of resources. It also lets go of processes that ended without anybody waiting for them.
func (a *Agent) heartbeat() *apiv1.Heartbeat {
	a.tree.reap()
	return &apiv1.Heartbeat{MemoryBytes: a.tree.memory(), DiskBytes: a.diskUse()}
}
