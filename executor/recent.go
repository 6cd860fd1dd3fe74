package executor

// recent remembers the newest attempts of some kind, and forgets the oldest beyond its size.
type recent struct {
	set   map[ref]bool
	order []ref
	next  int
}

func newRecent(size int) *recent {
	return &recent{set: make(map[ref]bool), order: make([]ref, 0, size)}
}

func (r *recent) has(x ref) bool { return r.set[x] }

func (r *recent) add(x ref) {
	if r.set[x] {
		return
	}
	r.set[x] = true
	if len(r.order) < cap(r.order) {
		r.order = append(r.order, x)
		return
	}
	delete(r.set, r.order[r.next])
	r.order[r.next] = x
	r.next = (r.next + 1) % len(r.order)
}
