package source

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/pod"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// errStale says that a list is older than what was seen before it was asked for. A server that does not read from the quorum gives such lists,
// and so does a cluster whose storage was set back to a backup.
var errStale = errors.New("the list is older than what was seen before: an API server lags behind, " +
	"or the cluster was restored from a backup; in the latter case restart the daemon")

func selector() string { return pod.Selector() }

// poll lists at the start, when called for, and from time to time. A list that fails is tried again.
func (f *Feed) poll(ctx context.Context) {
	for streak := 0; ; {
		err := f.relist(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.complain(ctx, streak, "list", err)
			if !pause(ctx, max(f.backoff(streak), cluster.RetryAfter(err))) {
				return
			}
			streak++
			continue
		}
		streak = 0
		signal(f.fresh)
		if !f.untilNext(ctx) {
			return
		}
	}
}

// untilNext waits until a list is due or called for.
func (f *Feed) untilNext(ctx context.Context) bool {
	var due <-chan time.Time
	if f.cfg.Poll > 0 {
		timer := time.NewTimer(f.cfg.Poll)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-f.wanted:
	case <-due:
	}
	return true
}

// relist lists and delivers once.
func (f *Feed) relist(ctx context.Context) error {
	known := f.begin()
	var looks []look
	text, err := f.cfg.Cluster.List(ctx, f.query, func(p *corev1.Pod) { looks = append(looks, f.look(p)) })
	f.m.listed(ctx, err)
	if err != nil {
		return err
	}
	version := number(text)
	if version != 0 && version < known {
		return errStale
	}
	f.sign()
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.gather(ctx, version, looks)
	f.tellForeign(ctx, f.census.begin(&l))
	f.list = mark{number: f.list.number + 1, version: l.Version, text: text}
	f.newest = max(f.newest, l.Version)
	f.cfg.Sink.Listed(l)
	for _, s := range f.meanwhile { // foreign pods have no versions by which others could tell that the list is older
		if s.version > l.Version {
			f.foreign(ctx, s)
		}
	}
	f.meanwhile, f.listing = nil, false
	return nil
}

// gather makes a list of what was looked at. f.mu must be held: what a watch has shown while the list came belongs to what is known.
func (f *Feed) gather(ctx context.Context, version snapshot.Version, looks []look) Listing {
	l := Listing{Version: version, apps: map[string]*listed{}, lives: map[uint32]struct{}{}}
	for i := range looks {
		f.recognise(ctx, &looks[i])
		f.add(ctx, &l, &looks[i])
	}
	f.roll.listed(version, looks)
	for _, in := range l.apps {
		slices.SortFunc(in.pods, byExecutor)
		slices.SortFunc(in.foreign, func(a, b application.ForeignPod) int { return cmp.Compare(a.Name, b.Name) })
	}
	return l
}

func (f *Feed) add(ctx context.Context, l *Listing, at *look) {
	if at.err != nil {
		f.ignore(ctx, at)
		return
	}
	seen := &at.seen
	l.lives[seen.Incarnation] = struct{}{}
	in := l.of(seen.App)
	if at.whose != "" {
		in.foreign = append(in.foreign, application.ForeignPod{Name: seen.Pod.Name, Whose: at.whose})
		return
	}
	in.pods = append(in.pods, seen.Pod)
}

// ignore leaves a pod out that does not name an executor.
func (f *Feed) ignore(ctx context.Context, at *look) {
	if f.unreadable.first(at.seen.Pod.UID) {
		f.m.unread.Add(ctx, 1, f.m.here)
		f.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a pod with our labels is left out",
			slog.String("namespace", f.cfg.Namespace), slog.String("error", at.err.Error()))
	}
}

// begin returns the newest version that was seen: a list that begins now must not be older.
func (f *Feed) begin() snapshot.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meanwhile, f.listing = nil, true
	f.roll.begin()
	return f.newest
}

// complain logs the first error of a row, and the one with which the pauses stop growing; the metrics count all.
func (f *Feed) complain(ctx context.Context, streak int, doing string, err error) {
	level := slog.LevelDebug
	if streak == 0 || f.growth(streak-1) < f.cfg.MaxBackoff && f.growth(streak) == f.cfg.MaxBackoff {
		level = slog.LevelWarn
	}
	f.cfg.Log.LogAttrs(ctx, level, "the cluster does not show its pods: trying again with growing pauses",
		slog.String("doing", doing), slog.String("namespace", f.cfg.Namespace),
		slog.String("class", cluster.ClassOf(err).String()), slog.String("error", err.Error()))
}

func (f *Feed) growth(streak int) time.Duration {
	d := f.cfg.Backoff
	for range streak {
		if d *= 2; d >= f.cfg.MaxBackoff {
			return f.cfg.MaxBackoff
		}
	}
	return d
}

// backoff is the pause after so many errors in a row, with jitter: many daemons lose the same server at the same moment.
func (f *Feed) backoff(streak int) time.Duration {
	d := f.growth(streak)
	return d/2 + rand.N(d/2+1)
}

// number is a version of the cluster as a number, 0 where it does not count.
func number(version string) snapshot.Version {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return snapshot.Version(v)
}
