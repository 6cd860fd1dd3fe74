package policy

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
)

// What an instance may say in one call.
const (
	maxOutput = 16 << 10 // bytes of log and of what it prints, together
	maxLine   = 1 << 10
	maxLines  = 64
	maxPoints = 64 // metric calls
)

// world is what one instance sees of the outside: a clock, a source of numbers and an environment, all made from what it was
// asked, and a place for what it says.
type world struct {
	wall      int64 // nanoseconds
	monotonic int64 // nanoseconds; never 0
	started   int64 // nanoseconds; where monotonic stood when the image was taken: no question shows an earlier time
	seed      uint64
	env       []string
	tank      tank
	said      []line
	size      int // bytes of said and partial
	partial   []byte
	points    []point
	dropped   int // lines and points beyond the bounds
}

// line is something that an instance said.
type line struct {
	level uint32
	text  string
}

// point is a value that an instance gave to a metric.
type point struct {
	kind  uint32
	name  string
	value int64
}

// newWorld returns the world in which an instance of a module starts.
func newWorld(digest string, memoryLimit uint64) *world {
	return &world{
		monotonic: 1,
		started:   1,
		wall:      1,
		seed:      seedOf(digest),
		// Go's own limit stands well below the memory's, so that its collector works harder before the memory ends.
		env: []string{"GOGC=100", "GOMEMLIMIT=" + strconv.FormatUint(memoryLimit/10*6, 10)},
	}
}

// seedOf makes a number of a digest, so that the numbers that a module draws while it starts are the same everywhere.
func seedOf(digest string) uint64 {
	raw, _ := hex.DecodeString(digest[len(digest)-16:]) // a digest ends in hexadecimal digits
	seed := uint64(0)
	for _, b := range raw {
		seed = seed<<8 | uint64(b)
	}
	return seed
}

// begin sets the world to the moment and the seed of a question.
func (w *world) begin(elapsedMS, wallMS int64, seed uint64) {
	w.monotonic = max(w.started, elapsedMS*1e6)
	w.wall = wallMS * 1e6
	w.seed = seed
	w.said, w.points, w.partial = w.said[:0], w.points[:0], w.partial[:0]
	w.size, w.dropped = 0, 0
}

// now reads a clock, by WASI's number for it: 0 tells the time of day, the others count from the application's creation.
func (w *world) now(clock uint32) int64 {
	if clock == 0 {
		return max(w.wall, 0)
	}
	return w.monotonic
}

// sleep lets time pass.
func (w *world) sleep(nanoseconds uint64) {
	const day = 24 * 60 * 60 * 1e9 // a longer sleep is cut: sums stay in range
	passed := int64(min(nanoseconds, day))
	w.monotonic += passed
	w.wall += passed
}

// random draws the next number, by splitmix64.
func (w *world) random() uint64 {
	w.seed += 0x9e3779b97f4a7c15
	z := w.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// say keeps a line, as far as there is room. Oversized text is cut.
func (w *world) say(level uint32, text []byte) {
	if len(w.said) >= maxLines || w.size >= maxOutput {
		w.dropped++
		return
	}
	text = text[:min(len(text), maxLine, maxOutput-w.size)]
	w.size += len(text)
	w.said = append(w.said, line{level: level, text: printable(text)})
}

// write takes what the instance prints and keeps it line by line.
func (w *world) write(text []byte) {
	for len(text) > 0 {
		if len(w.said) >= maxLines || w.size >= maxOutput {
			w.dropped++ // however many lines that were
			return
		}
		head, tail, ended := bytes.Cut(text, []byte{'\n'})
		room := max(maxLine-len(w.partial), 0)
		w.partial = append(w.partial, head[:min(len(head), room)]...)
		if ended {
			w.flush()
		}
		text = tail
	}
}

// flush ends the line that is being printed.
func (w *world) flush() {
	if len(w.partial) > 0 {
		w.say(levelPrinted, w.partial)
		w.partial = w.partial[:0]
	}
}

// measure keeps a metric's value, as far as there is room.
func (w *world) measure(kind uint32, name string, value int64) {
	if len(w.points) >= maxPoints {
		w.dropped++
		return
	}
	w.points = append(w.points, point{kind: kind, name: name, value: value})
}

// lastWords returns the first lines that were printed, as one: a runtime that dies says why first.
func (w *world) lastWords() string {
	w.flush()
	var words []string
	for _, l := range w.said {
		if l.level == levelPrinted && len(words) < 2 {
			words = append(words, strings.TrimSpace(l.text))
		}
	}
	return strings.Join(words, " / ")
}

// printable returns text without what a terminal would act on.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(string(text), string(unicode.ReplacementChar)))
}
