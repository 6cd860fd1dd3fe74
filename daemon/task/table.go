package task

import "iter"

// pageSize is how many consecutive tasks share a page.
const pageSize = 512

// table finds tasks by their number and walks them in order. Numbers are dense, so it is a row of pages; a page goes with its last task, so
// an old task that never ends costs one page, and a pointer for each page after it.
type table struct {
	base  uint64 // number of the first page
	pages []*page
}

type page struct {
	live    int
	records [pageSize]*record
}

// at returns the task, or nil.
func (t *table) at(id ID) *record {
	n := uint64(id) / pageSize
	if n < t.base || n-t.base >= uint64(len(t.pages)) || t.pages[n-t.base] == nil {
		return nil
	}
	return t.pages[n-t.base].records[uint64(id)%pageSize]
}

// add enters a task whose number is higher than all before.
func (t *table) add(r *record) {
	n := uint64(r.ID) / pageSize
	if len(t.pages) == 0 {
		t.base = n
	}
	for t.base+uint64(len(t.pages)) <= n {
		t.pages = append(t.pages, nil)
	}
	p := &t.pages[n-t.base]
	if *p == nil {
		*p = &page{}
	}
	(*p).records[uint64(r.ID)%pageSize] = r
	(*p).live++
}

// remove forgets a task that is in the table.
func (t *table) remove(id ID) {
	n := uint64(id)/pageSize - t.base
	p := t.pages[n]
	p.records[uint64(id)%pageSize] = nil
	if p.live--; p.live > 0 {
		return
	}
	t.pages[n] = nil
	for len(t.pages) > 0 && t.pages[0] == nil {
		t.pages = t.pages[1:]
		t.base++
	}
}

// after walks the tasks with higher numbers than id, ascending. The table must not change meanwhile.
func (t *table) after(id ID) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		from := max(uint64(id)+1, t.base*pageSize)
		end := (t.base + uint64(len(t.pages))) * pageSize
		for n := from; n < end; n++ {
			p := t.pages[n/pageSize-t.base]
			if p == nil {
				n += pageSize - 1 - n%pageSize
				continue
			}
			if r := p.records[n%pageSize]; r != nil && !yield(r) {
				return
			}
		}
	}
}
