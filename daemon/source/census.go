package source

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/snapshot"
)

// census knows which pods there are that are not ours, and which incarnations any pod shows. It may be asked at any time.
type census struct {
	mu      sync.Mutex
	foreign map[string]struct{} // names
	told    map[string]struct{} // of those that were logged
	lives   map[uint32]struct{} // shown by the newest list or since
}

// maxTold bounds the foreign pods that are logged one by one: another daemon's fleet may be large, and come and go.
const maxTold = 256

// maxNamed is how many names a log record holds.
const maxNamed = 10

// begin takes in a list, and returns the names of foreign pods that are to be told of.
func (c *census) begin(l *Listing) (news []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives, c.foreign = maps.Clone(l.lives), map[string]struct{}{}
	for _, in := range l.apps {
		for i := range in.foreign {
			c.foreign[in.foreign[i].Name] = struct{}{}
		}
	}
	maps.DeleteFunc(c.told, func(name string, _ struct{}) bool { _, there := c.foreign[name]; return !there })
	for _, name := range slices.Sorted(maps.Keys(c.foreign)) {
		if c.first(name) {
			news = append(news, name)
		}
	}
	return news
}

// sighting is a foreign pod as a watch shows it.
type sighting struct {
	app         string
	incarnation uint32
	pod         application.ForeignPod
	version     snapshot.Version
	gone        bool
}

// stranger takes in a foreign pod, and reports whether it is to be told of.
func (c *census) stranger(s *sighting) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.gone {
		delete(c.foreign, s.pod.Name)
		return false
	}
	c.live(s.incarnation)
	if c.foreign == nil {
		c.foreign = map[string]struct{}{}
	}
	c.foreign[s.pod.Name] = struct{}{}
	return c.first(s.pod.Name)
}

// ours takes in a pod of ours.
func (c *census) ours(incarnation uint32, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live(incarnation)
	delete(c.foreign, name)
}

func (c *census) live(incarnation uint32) {
	if c.lives == nil { // the first list is not there yet
		c.lives = map[uint32]struct{}{}
	}
	c.lives[incarnation] = struct{}{}
}

func (c *census) first(name string) bool {
	if _, told := c.told[name]; told || len(c.told) >= maxTold {
		return false
	}
	if c.told == nil {
		c.told = map[string]struct{}{}
	}
	c.told[name] = struct{}{}
	return true
}

func (c *census) shows(incarnation uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.lives[incarnation]
	return there
}

func (c *census) strangers() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.foreign))
}

// Shows reports whether a pod, ours or not, shows an incarnation, as far as is known.
func (f *Feed) Shows(incarnation uint32) bool { return f.census.shows(incarnation) }

// foreign passes a foreign pod on. f.mu must be held.
func (f *Feed) foreign(ctx context.Context, s sighting) {
	if f.census.stranger(&s) {
		f.tellForeign(ctx, []string{s.pod.Name})
	}
	f.cfg.Sink.Foreign(s.app, s.pod, s.gone)
}

// tellForeign logs foreign pods that were not told of before.
func (f *Feed) tellForeign(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	f.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "pods that are not this daemon's carry the labels of its pods: they are left alone",
		slog.String("namespace", f.cfg.Namespace), slog.Int("count", len(names)), slog.Any("names", names[:min(len(names), maxNamed)]))
}
