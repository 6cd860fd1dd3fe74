package elastic

import (
	"cmp"
	"slices"

	"github.com/retinue-sched/retinue/hostabi"
	"github.com/retinue-sched/retinue/sdk"
)

// stateVersion is the layout of growth as bytes: 16 each, sorted by profile: profile u32, base u32, since i64,
// little endian.
const (
	stateVersion = 1
	windowSize   = 16
)

// growth is what elastic remembers from call to call: each profile's current growth interval.
type growth struct {
	windows []window // sorted by profile
	bytes   []byte
}

// window is a growth interval: when it began, and how many executors were live then.
type window struct {
	profile uint32
	base    uint32
	since   int64
}

// window returns the interval that a profile is in, a new one if the last is over.
func (g *growth) window(f *sdk.Fleet, now, interval int64) window {
	i, ok := slices.BinarySearchFunc(g.windows, f.ID, func(w window, id uint32) int { return cmp.Compare(w.profile, id) })
	fresh := window{f.ID, f.Live(), now}
	switch {
	case !ok:
		g.windows = slices.Insert(g.windows, i, fresh)
	case now-g.windows[i].since >= interval || now < g.windows[i].since:
		g.windows[i] = fresh
	}
	return g.windows[i]
}

// read takes the intervals from the state of a view, leaving out profiles that are gone. State that another policy
// or version wrote is forgotten: it costs one interval's growth.
func (g *growth) read(v *sdk.View) {
	g.windows = g.windows[:0]
	state := v.Decision.State()
	if v.Decision.StateVersion() != stateVersion || len(state)%windowSize != 0 {
		return
	}
	profiles := v.Profiles.ID()
	for ; len(state) > 0; state = state[windowSize:] {
		w := window{uint32(number(state[:4])), uint32(number(state[4:8])), int64(number(state[8:16]))}
		if slices.Contains(profiles, w.profile) {
			g.windows = append(g.windows, w)
		}
	}
	slices.SortFunc(g.windows, func(a, b window) int { return cmp.Compare(a.profile, b.profile) })
}

// write puts the intervals into the state of a result.
func (g *growth) write(r *sdk.Result) {
	g.bytes = g.bytes[:0]
	for _, w := range g.windows[:min(len(g.windows), hostabi.MaxStateSize/windowSize)] {
		g.bytes = appendNumber(g.bytes, uint64(w.profile), 4)
		g.bytes = appendNumber(g.bytes, uint64(w.base), 4)
		g.bytes = appendNumber(g.bytes, uint64(w.since), 8)
	}
	r.SetState(stateVersion, g.bytes)
}

// number reads a little-endian number.
func number(b []byte) uint64 {
	n := uint64(0)
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// appendNumber appends the low bytes of n, the lowest first.
func appendNumber(b []byte, n uint64, bytes int) []byte {
	for range bytes {
		b, n = append(b, byte(n)), n>>8
	}
	return b
}
