package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a guest's memory in pages of its own. It can be put back to what it was for the price of the pages that were written to since, and
// all instances that are put back to the same frozen share the pages that they do not write to.
type mapping struct {
	region []byte // as much as the memory may ever have; only the front can be used
	size   uint64 // of the front
}

// frozen is what a memory holds at some moment, as a file that is nowhere in the file system. Memories that are what is frozen stay it when the file
// is closed.
type frozen struct {
	file *os.File
	size int
}

// newMapping reserves addresses for a memory of up to most bytes.
func newMapping(most uint64) (*mapping, error) {
	region, err := unix.Mmap(-1, 0, int(most), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of addresses: %w", most, err)
	}
	return &mapping{region: region}, nil
}

// Reallocate lets the first size bytes be used. The memory does not move. What is added later is readied here, where the daemon goes on meanwhile:
// a guest that touches it for the first time holds up the collector.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.region)) || size > 0 && unix.Mprotect(m.region[:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
		return nil
	}
	if m.size > 0 && size > m.size {
		m.expect(m.size, size-m.size)
	}
	m.size = size
	return m.region[:size:size]
}

// Free gives everything back.
func (m *mapping) Free() {
	if m.region != nil {
		_ = unix.Munmap(m.region) // it was mapped
		m.region = nil
	}
}

// freeze keeps the first size bytes.
func (m *mapping) freeze(size int) (*frozen, error) {
	fd, err := unix.MemfdCreate("retinue-policy", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	f := &frozen{file: os.NewFile(uintptr(fd), "retinue-policy"), size: size}
	if err := f.write(m.region[:size]); err != nil {
		return nil, errors.Join(fmt.Errorf("writing a file in memory: %w", err), f.close())
	}
	return f, nil
}

// write writes what is not zero: the rest of the file takes no memory.
func (f *frozen) write(memory []byte) error {
	if err := f.file.Truncate(int64(f.size)); err != nil {
		return err
	}
	const block = 4 << 10
	var zero [block]byte
	for at := 0; at < f.size; at += block {
		if part := memory[at:min(at+block, f.size)]; !bytes.Equal(part, zero[:len(part)]) {
			if _, err := f.file.WriteAt(part, int64(at)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *frozen) close() error { return f.file.Close() }

// assume makes the front of the memory what is frozen, and lets it be put back to that.
func (m *mapping) assume(f *frozen) error {
	_, err := unix.MmapPtr(int(f.file.Fd()), 0, unsafe.Pointer(unsafe.SliceData(m.region)), uintptr(f.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}

// expect readies some bytes for being written: all their pages at once cost a fraction of what they do one after the other. It is not needed.
func (m *mapping) expect(at, size uint64) {
	page := uint64(os.Getpagesize())
	from, to := at&^(page-1), min(at+size, uint64(len(m.region)))
	if size > page && from < to {
		_ = unix.Madvise(m.region[from:to], unix.MADV_POPULATE_WRITE) // older kernels cannot
	}
}

// restore puts the memory back to what is frozen and was assumed: the pages that were written to since are dropped.
func (m *mapping) restore(f *frozen) error {
	return unix.Madvise(m.region[:f.size], unix.MADV_DONTNEED)
}
