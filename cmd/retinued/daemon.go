package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"

	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/daemon/telemetry"
)

// runDaemon runs until ctx is done.
func runDaemon(ctx context.Context, args []string, out, logTo io.Writer) error {
	src, rest, err := parse("retinued", args, out)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{fmt.Errorf("%q is one word too many: `retinued help` lists what can be said", rest[0])}
	}
	w := watcher{}
	w.add(src.files...) // before they are read, so that no change is missed
	cfg, err := src.load()
	if err != nil {
		return usageError{err}
	}
	w.add(cfg.Listen.TokenFile)
	if err = cfg.Validate(); err != nil {
		return usageError{fmt.Errorf("checking the configuration:\n%w", err)}
	}
	cfg.Telemetry.Version = programVersion()
	var level slog.LevelVar
	setLevel(&level, cfg.Telemetry.LogLevel)
	handler, err := telemetry.NewHandler(logTo, cfg.Telemetry.LogFormat, &level)
	if err != nil {
		return usageError{err}
	}
	log := slog.New(handler)
	d, err := daemon.New(cfg, log) //nolint:contextcheck // opening and closing is not broken off
	if err != nil {
		return err
	}
	stop := reloading(ctx, w, &reloader{daemon: d, log: log, level: &level, src: src, running: cfg})
	defer stop()
	log.LogAttrs(ctx, slog.LevelInfo, "retinued starts", slog.String("version", programVersion()), slog.Int("pid", os.Getpid()))
	err = d.Run(ctx)
	log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "retinued has stopped")
	return err
}

func setLevel(level *slog.LevelVar, name string) {
	if l, err := telemetry.ParseLevel(name); err == nil { // Validate has seen it
		level.Set(l)
	}
}

// reloader takes a changed configuration as far as it can be taken without a restart.
type reloader struct {
	daemon  *daemon.Daemon
	log     *slog.Logger
	level   *slog.LevelVar
	src     sources
	running daemon.Config
}

// reloadable are the keys that take effect at once.
var reloadable = []string{"telemetry.logLevel"}

// reload reads everything again. What is wrong changes nothing and is logged: a bad file never ends the daemon.
func (r *reloader) reload(ctx context.Context) {
	cfg, err := r.src.load()
	if err == nil {
		err = cfg.Validate()
	}
	if err == nil {
		err = r.daemon.Reload(ctx)
	}
	if err != nil {
		r.log.LogAttrs(ctx, slog.LevelError, "configuration not reloaded: the one before stays in force", slog.String("error", err.Error()))
		return
	}
	setLevel(r.level, cfg.Telemetry.LogLevel)
	r.running.Telemetry.LogLevel = cfg.Telemetry.LogLevel
	r.log.LogAttrs(ctx, slog.LevelInfo, "configuration reloaded", slog.Any("restart_needed_for", changedKeys(r.running, cfg)))
}

// changedKeys lists the keys that differ and need a restart.
func changedKeys(a, b daemon.Config) []string {
	before, after := map[string]any{}, map[string]any{}
	collect(before, "", reflect.ValueOf(a))
	collect(after, "", reflect.ValueOf(b))
	changed := []string{}
	for _, key := range keys {
		if !reflect.DeepEqual(before[key], after[key]) && !slices.Contains(reloadable, key) {
			changed = append(changed, key)
		}
	}
	return changed
}
