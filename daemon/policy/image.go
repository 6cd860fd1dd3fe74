package policy

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// image is what an instance holds at the moment at which it is ready for its first question: everything that a call can change.
type image struct {
	size    int     // bytes of memory
	pages   *frozen // what they hold, if that can be put back by page
	memory  []byte  // what they hold, if it must be copied
	globals []uint64
	clock   int64 // nanoseconds
	reserve int   // bytes of a view for which there is room
	holds   int   // of the pool, and of those who make an instance of it just now; the pool counts
}

// take makes an image of the instance as it is now, and lets the instance be put back to it.
func (i *instance) take(reserve int) *image {
	memory, _ := i.guest.Memory().Read(0, i.guest.Memory().Size()) // all of it is there
	img := &image{size: len(memory), reserve: reserve, clock: i.world.monotonic}
	for _, g := range i.globals {
		img.globals = append(img.globals, g.Get())
	}
	if !i.freeze(img) {
		img.memory = append([]byte(nil), memory...)
	}
	return img
}

// freeze keeps the pages of the instance, where they can be kept.
func (i *instance) freeze(img *image) bool {
	if i.pages == nil {
		return false
	}
	pages, err := i.pages.freeze(img.size)
	if err != nil {
		return false
	}
	if i.pages.assume(pages) != nil {
		_ = pages.close() // it is not needed
		return false
	}
	img.pages = pages
	return true
}

// close gives back what the image keeps. The instances that were made of it need it no more.
func (img *image) close() {
	if img.pages != nil {
		_ = img.pages.close() // it has been written, and nobody reads it any more
	}
}

// restore makes the instance what it was, and reports whether that is possible: memory that has grown cannot shrink.
func (i *instance) restore(img *image) bool {
	if int(i.guest.Memory().Size()) != img.size {
		return false
	}
	if img.pages != nil {
		if i.pages.restore(img.pages) != nil {
			return false
		}
	} else if !i.guest.Memory().Write(0, img.memory) {
		return false
	}
	i.putBack(img)
	return true
}

// assume makes a new instance what another was, and reports whether there is memory for it.
func (i *instance) assume(img *image) bool {
	if missing := img.size - int(i.guest.Memory().Size()); missing > 0 {
		if _, ok := i.guest.Memory().Grow(uint32(missing / pageSize)); !ok {
			return false
		}
	}
	if img.pages == nil {
		return i.restore(img)
	}
	if i.pages == nil || i.pages.assume(img.pages) != nil {
		return false
	}
	i.putBack(img)
	return true
}

// putBack puts back what is not memory.
func (i *instance) putBack(img *image) {
	for n, g := range i.globals {
		g.Set(img.globals[n])
	}
	i.world.started = img.clock
}

// variables returns the global variables that a metered module exports so that they can be put back.
func variables(guest api.Module, names []string) []api.MutableGlobal {
	list := make([]api.MutableGlobal, len(names))
	for n, name := range names {
		list[n], _ = guest.ExportedGlobal(name).(api.MutableGlobal)
	}
	return list
}

// heap is a guest's memory where it cannot be put back by page.
type heap struct{ memory []byte }

// Reallocate makes the memory size bytes long.
func (h *heap) Reallocate(size uint64) []byte {
	if size > uint64(cap(h.memory)) {
		h.memory = append(make([]byte, 0, size), h.memory...)
	}
	h.memory = h.memory[:size]
	return h.memory
}

// Free has nothing to do.
func (h *heap) Free() {}

// allocate is given to the engine to make the memory of an instance.
func (i *instance) allocate(_, most uint64) experimental.LinearMemory {
	if i.engine.copies {
		return &heap{}
	}
	pages, err := newMapping(most)
	if err != nil {
		return &heap{}
	}
	i.pages = pages
	return pages
}
