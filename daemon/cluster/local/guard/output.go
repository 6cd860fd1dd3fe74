package guard

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// longestLine is where a line is cut into parts, as container runtimes do.
const longestLine = 16 << 10

// LogTime is how a log line begins, followed by its stream, F or P (full line, or a part that goes on), and the text.
const LogTime = "2006-01-02T15:04:05.000000000Z07:00"

// output carries what the container writes into its log.
type output struct {
	stdout, stderr stream
	log            *logFile
	pumps          sync.WaitGroup
}

type stream struct {
	name        string
	read, write *os.File
}

func newOutput(spec Spec) (*output, error) {
	log, err := openLog(spec.Log, spec.LogBytes)
	if err != nil {
		return nil, err
	}
	o := &output{log: log}
	if o.stdout, err = newStream("stdout"); err != nil {
		return nil, err
	}
	if o.stderr, err = newStream("stderr"); err != nil {
		return nil, err
	}
	return o, nil
}

func newStream(name string) (stream, error) {
	r, w, err := os.Pipe()
	return stream{name: name, read: r, write: w}, err
}

// closeWriters leaves the writing ends to the container, so that its end is the end of the stream.
func (o *output) closeWriters() {
	o.stdout.write.Close()
	o.stderr.write.Close()
}

func (o *output) pump() {
	for _, s := range []stream{o.stdout, o.stderr} {
		o.pumps.Go(func() { s.pump(o.log) })
	}
}

// finish waits for the rest of the output, at most for patience.
func (o *output) finish(patience time.Duration) {
	deadline := time.Now().Add(patience)
	o.stdout.read.SetReadDeadline(deadline) //nolint:errcheck // a pipe takes deadlines
	o.stderr.read.SetReadDeadline(deadline) //nolint:errcheck // a pipe takes deadlines
	o.pumps.Wait()
	o.log.close()
}

// pump copies lines until the stream ends. It never stops reading for a log that cannot be written: a container must
// not hang on a full disk.
func (s stream) pump(log *logFile) {
	var pending []byte
	chunk := make([]byte, longestLine)
	for {
		n, err := s.read.Read(chunk)
		pending = append(pending, chunk[:n]...)
		pending = pending[:copy(pending, log.append(s.name, pending, err != nil))]
		if err != nil {
			return
		}
	}
}

// logFile is a file in the format of container runtimes, rotated when it is full.
type logFile struct {
	mu    sync.Mutex
	path  string
	limit int64
	file  *os.File
	size  int64
	batch bytes.Buffer
}

func openLog(path string, limit int64) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return &logFile{path: path, limit: limit, file: f, size: size}, nil
}

// append writes the lines of text and returns what is left of it: the beginning of a line, unless last.
func (l *logFile) append(stream string, text []byte, last bool) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UTC().Format(LogTime)
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		switch {
		case len(line) > longestLine:
			l.line(now, stream, 'P', line[:longestLine])
			text = text[longestLine:]
		case whole:
			l.line(now, stream, 'F', line)
			text = rest
		case last:
			l.line(now, stream, 'P', line)
			text = nil
		default:
			l.flush()
			return text
		}
	}
	l.flush()
	return nil
}

func (l *logFile) line(now, stream string, tag byte, text []byte) {
	if l.limit > 0 && l.size+int64(l.batch.Len()) >= l.limit {
		l.flush()
		l.rotate()
	}
	fmt.Fprintf(&l.batch, "%s %s %c %s\n", now, stream, tag, text)
}

func (l *logFile) flush() {
	n, err := l.batch.WriteTo(l.file)
	l.size += n
	if err != nil {
		l.batch.Reset() // these lines are lost; the next may find room
	}
}

// rotate keeps one older file. When that does not work the log goes on in the same one: bounded by hope, but not lost.
func (l *logFile) rotate() {
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	l.file.Close()
	l.file, l.size = f, 0
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.Close()
}
