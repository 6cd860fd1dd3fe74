package source

import (
	"context"
	"errors"
	"time"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/cluster"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// errSilent says that a watch showed nothing for too long, not even a bookmark.
var errSilent = errors.New("the watch has been silent for too long")

// brief is how long a stream must live for its end to be a regular one: a server that ends each at once must not be asked without pause.
const brief = time.Second

// watch follows changes from the last list on. A stream that ended as it should is opened again where it ended; one that broke as well, and a
// list makes good what may be lost; one whose place in history is gone goes on from a new list.
func (f *Feed) watch(ctx context.Context) {
	var at mark
	var from string
	for streak := 0; ; {
		if from == "" {
			var ok bool
			if at, ok = f.await(ctx, at.number); !ok {
				return
			}
			from = at.text
		}
		began := time.Now()
		heard, err := f.follow(ctx, &from)
		if ctx.Err() != nil {
			return
		}
		f.m.broke(ctx, err)
		if heard {
			streak = 0
		}
		if errors.Is(err, cluster.ErrEnded) && time.Since(began) >= brief {
			continue
		}
		if at.number = f.listNumber(); cluster.ClassOf(err) == cluster.Gone {
			from = ""
		}
		f.complain(ctx, streak, "watch", err)
		if !pause(ctx, max(f.backoff(streak), cluster.RetryAfter(err))) {
			return
		}
		streak++
		f.Refresh()
	}
}

// await waits for a list newer than the given one.
func (f *Feed) await(ctx context.Context, after uint64) (mark, bool) {
	for {
		f.mu.Lock()
		m := f.list
		f.mu.Unlock()
		if m.number > after {
			return m, true
		}
		select {
		case <-ctx.Done():
			return mark{}, false
		case <-f.fresh:
		}
	}
}

func (f *Feed) listNumber() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list.number
}

// follow opens a stream and takes what it shows until it ends, and says whether it showed anything. It moves from along.
func (f *Feed) follow(ctx context.Context, from *string) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(f.cfg.Silence, func() { cancel(errSilent) })
	defer alarm.Stop()
	stream, err := f.cfg.Cluster.Watch(ctx, f.query, *from)
	if err != nil {
		return false, orSilence(ctx, err)
	}
	defer stream.Close()
	for {
		ev, err := stream.Next(ctx)
		if err != nil {
			return heard, orSilence(ctx, err)
		}
		heard = true
		alarm.Reset(f.cfg.Silence)
		if ev.Version != "" {
			*from = ev.Version
		}
		f.take(ctx, ev)
	}
}

// orSilence is why a stream broke: if the alarm did it, the stream's own error only says that it was cut off.
func orSilence(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// take delivers an event, unless a list has already said as much.
func (f *Feed) take(ctx context.Context, ev cluster.Event) {
	v := number(ev.Version)
	f.m.events.Add(ctx, 1, f.m.here)
	f.sign()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest = max(f.newest, v)
	if ev.Pod == nil || v != 0 && v <= f.list.version {
		return
	}
	at := f.look(ev.Pod)
	f.recognise(ctx, &at)
	if at.err != nil {
		f.ignore(ctx, &at)
		return
	}
	seen, o, gone := &at.seen, at.seen.Pod, ev.Kind == cluster.Deleted
	if at.whose != "" {
		s := sighting{seen.App, seen.Incarnation, application.ForeignPod{Name: o.Name, Whose: at.whose}, v, gone}
		if f.listing {
			f.meanwhile = append(f.meanwhile, s)
		}
		f.foreign(ctx, s)
		return
	}
	f.census.ours(seen.Incarnation, o.Name)
	if gone {
		f.roll.left(o.UID, f.listing)
		o.Phase, o.Wait, o.WaitText = snapshot.Deleted, snapshot.WaitNone, ""
	}
	f.cfg.Sink.Observed(seen.App, o)
}
