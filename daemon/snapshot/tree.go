package snapshot

import "math/bits"

// A tree holds executors by ID in pages of 32 that are shared between the store and its snapshots. Empty pages are not kept, so what it costs
// depends on how many executors there are, not on how large their numbers have grown.
//
// Everything carries the epoch that made it. A writer changes what its own epoch made and copies the rest; a new epoch begins with each
// published snapshot, so nothing that a reader holds is ever written to.
type tree struct {
	root   *page
	height uint // levels above the lowest
}

const (
	pageBits = 5
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// page has cells on the lowest level and kids above it.
type page struct {
	epoch uint64
	used  uint32 // bit i: place i is taken
	kids  *[pageSize]*page
	cells *[pageSize]*cell
}

type cell struct {
	epoch    uint64
	executor Executor
}

func place(id ID, height uint) uint { return uint(id>>(pageBits*height)) & pageMask }

// covers reports whether id has a place in a tree of a height.
func covers(id ID, height uint) bool { return id>>(pageBits*(height+1)) == 0 }

// newPage returns an empty page. It is one allocation, as most of what a write costs is copying pages.
func newPage(epoch uint64, lowest bool) *page {
	if lowest {
		p := &struct {
			page
			cells [pageSize]*cell
		}{page: page{epoch: epoch}}
		p.page.cells = &p.cells
		return &p.page
	}
	p := &struct {
		page
		kids [pageSize]*page
	}{page: page{epoch: epoch}}
	p.page.kids = &p.kids
	return &p.page
}

// own is p, or a copy of it if p belongs to another epoch.
func (p *page) own(epoch uint64) *page {
	if p.epoch == epoch {
		return p
	}
	q := newPage(epoch, p.cells != nil)
	q.used = p.used
	if p.kids != nil {
		*q.kids = *p.kids
	} else {
		*q.cells = *p.cells
	}
	return q
}

// find returns the executor to be read, nil if there is none.
func (t *tree) find(id ID) *Executor {
	if t.root == nil || !covers(id, t.height) {
		return nil
	}
	p := t.root
	for h := t.height; h > 0; h-- {
		if p = p.kids[place(id, h)]; p == nil {
			return nil
		}
	}
	c := p.cells[place(id, 0)]
	if c == nil {
		return nil
	}
	return &c.executor
}

// edit returns the executor to be written, zero if there was none.
func (t *tree) edit(epoch uint64, id ID) *Executor {
	t.grow(epoch, id)
	t.root = t.root.own(epoch)
	p := t.root
	for h := t.height; h > 0; h-- {
		i := place(id, h)
		if p.kids[i] == nil {
			p.kids[i] = newPage(epoch, h == 1)
			p.used |= 1 << i
		}
		p.kids[i] = p.kids[i].own(epoch)
		p = p.kids[i]
	}
	i := place(id, 0)
	switch c := p.cells[i]; {
	case c == nil:
		p.cells[i] = &cell{epoch: epoch}
		p.used |= 1 << i
	case c.epoch != epoch:
		p.cells[i] = &cell{epoch: epoch, executor: c.executor}
	}
	return &p.cells[i].executor
}

// grow makes room for id.
func (t *tree) grow(epoch uint64, id ID) {
	if t.root == nil {
		t.height = 0
		for !covers(id, t.height) {
			t.height++
		}
		t.root = newPage(epoch, t.height == 0)
	}
	for !covers(id, t.height) {
		t.height++
		root := newPage(epoch, false)
		root.kids[0], root.used = t.root, 1
		t.root = root
	}
}

// remove takes an executor that is in the tree out of it.
func (t *tree) remove(epoch uint64, id ID) {
	t.root = t.root.without(epoch, id, t.height)
	for t.root != nil && t.height > 0 && t.root.used == 1 {
		t.root = t.root.kids[0]
		t.height--
	}
}

// without is p less an executor, nil if that leaves nothing.
func (p *page) without(epoch uint64, id ID, height uint) *page {
	p = p.own(epoch)
	i := place(id, height)
	empty := true
	if height == 0 {
		p.cells[i] = nil
	} else {
		p.kids[i] = p.kids[i].without(epoch, id, height-1)
		empty = p.kids[i] == nil
	}
	if empty {
		p.used &^= 1 << i
	}
	if p.used == 0 {
		return nil
	}
	return p
}

// each yields the executors in ascending order of ID and reports whether it was let to the end.
func (p *page) each(yield func(*Executor) bool) bool {
	if p == nil {
		return true
	}
	for used := p.used; used != 0; used &= used - 1 {
		i := bits.TrailingZeros32(used)
		if p.kids != nil {
			if !p.kids[i].each(yield) {
				return false
			}
		} else if !yield(&p.cells[i].executor) {
			return false
		}
	}
	return true
}
