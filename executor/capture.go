package executor

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// Bounds of what is kept of a task's output, in bytes.
const (
	defaultOutput = 256 << 10 // standard output, until the daemon says
	maxOutput     = 2 << 20   // standard output, whatever the daemon says: a report has to fit in a message
	errorsTail    = 8 << 10
)

// head keeps the first bytes written to it.
type head struct {
	limit     int
	kept      []byte
	truncated bool
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.limit-len(h.kept))
	h.kept = append(h.kept, p[:n]...)
	h.truncated = h.truncated || n < len(p)
	return len(p), nil
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	kept  []byte // at most twice the limit
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-t.limit):]
	if len(t.kept)+len(p) > 2*t.limit {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.limit:]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

func (t *tail) bytes() []byte { return t.kept[max(0, len(t.kept)-t.limit):] }

// streams are a program's standard streams, as this side sees them. What they say is read as fast as it comes, and kept within bounds.
type streams struct {
	in, out, err *os.File // the program's ends, closed here once it has them; in is nil if there is no input
	feed         *os.File
	readers      [2]*os.File
	output       head
	errors       tail
	reading, fed sync.WaitGroup
	opened       []*os.File // all ends
}

// openStreams makes the streams. Output keeps at most limit bytes.
func openStreams(input []byte, limit int) (*streams, error) {
	s := &streams{output: head{limit: limit}, errors: tail{limit: errorsTail}}
	var err error
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			s.opened = append(s.opened, r, w)
		}
		return r, w
	}
	s.readers[0], s.out = pipe()
	s.readers[1], s.err = pipe()
	if len(input) > 0 {
		s.in, s.feed = pipe()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// carry begins to move bytes, once the child has its ends.
func (s *streams) carry(input []byte) {
	for _, end := range []*os.File{s.in, s.out, s.err} {
		if end != nil {
			_ = end.Close()
		}
	}
	s.reading.Go(func() { _, _ = io.Copy(&s.output, s.readers[0]) })
	s.reading.Go(func() { _, _ = io.Copy(&s.errors, s.readers[1]) })
	if s.feed != nil {
		s.fed.Go(func() {
			_, _ = io.Copy(s.feed, bytes.NewReader(input)) // a program need not read its input
			_ = s.feed.Close()
		})
	}
}

// finish waits until everything that was written has been read. All writers are gone, so that takes no time; one that escaped is not waited
// for.
func (s *streams) finish(patience time.Duration) {
	by := time.Now().Add(patience)
	for _, r := range s.readers {
		_ = r.SetReadDeadline(by)
	}
	s.reading.Wait()
	s.close()
	s.fed.Wait()
}

func (s *streams) close() {
	for _, f := range s.opened {
		_ = f.Close() // some are closed already
	}
}
