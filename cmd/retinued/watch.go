package main

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// lookEvery is the time between two looks at the files. A change takes effect after two looks, and a look costs some microseconds.
const lookEvery = time.Second

// watcher tells when files have changed, however that was done: written in place, renamed over, removed and made anew, or by moving a link that leads to
// them. It looks at them instead of asking the system to be told, since it is told about inodes and not about names, and loses track at the
// first rename. A change counts once nothing has moved for one more look, so that no half-written file is read.
type watcher struct {
	names   []string
	seen    map[string]fs.FileInfo // nil: it was not there
	pending []string               // files that have changed, perhaps not for the last time
}

// add watches further files. What they are like now is what changes are measured against. An empty name is none.
func (w *watcher) add(names ...string) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if w.seen == nil {
			w.seen = map[string]fs.FileInfo{}
		}
		w.names = append(w.names, name)
		w.seen[name] = status(name)
	}
}

// status follows links: what counts is what would be read.
func status(name string) fs.FileInfo {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	return info
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// look looks at the files, and returns those that have changed, once none has moved since the last look.
func (w *watcher) look() (changed []string) {
	still := true
	for _, name := range w.names {
		now := status(name)
		if !same(w.seen[name], now) {
			still = false
			if !slices.Contains(w.pending, name) {
				w.pending = append(w.pending, name)
			}
		}
		w.seen[name] = now
	}
	if still {
		changed, w.pending = w.pending, nil
	}
	return changed
}

// Run calls changed with the files that have, and at once, with none, after a hangup, until ctx is done. It returns context.Cause(ctx).
func (w *watcher) Run(ctx context.Context, tick <-chan time.Time, hangup <-chan os.Signal, changed func(context.Context, []string)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hangup:
			changed(ctx, nil)
		case <-tick:
			if files := w.look(); len(files) > 0 {
				changed(ctx, files)
			}
		}
	}
}

// reloading reloads at SIGHUP and when a file changes, until the function that it returns is called.
func reloading(ctx context.Context, w watcher, r *reloader) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	ticker := time.NewTicker(lookEvery)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		_ = w.Run(ctx, ticker.C, hangup, func(ctx context.Context, files []string) { // it only ever returns because ctx is done
			r.log.LogAttrs(ctx, slog.LevelInfo, "reloading", slog.Any("changed", files))
			r.reload(ctx)
		})
	})
	return func() {
		signal.Stop(hangup)
		ticker.Stop()
		cancel()
		running.Wait()
	}
}
