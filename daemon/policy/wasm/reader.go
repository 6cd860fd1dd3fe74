package wasm

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// What can be wrong with bytes.
var (
	errTruncated = errors.New("a length points past its end")
	errNumber    = errors.New("a number is too long or too big")
	errText      = errors.New("a name is not valid UTF-8")
)

// reader takes values off the front of bytes. After its first error it gives zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.b)
}

func (r *reader) done() bool { return r.at >= len(r.b) }

// each reads a count and calls read that often, until something is wrong.
func (r *reader) each(read func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		read()
	}
}

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail(errTruncated)
		return 0
	}
	b := r.b[r.at]
	r.at++
	return b
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail(errTruncated)
		return nil
	}
	b := r.b[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *reader) text() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail(errText)
	}
	return string(b)
}

// u32 reads an unsigned number of at most five bytes.
func (r *reader) u32() uint32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 { // most are short
		r.at++
		return uint32(r.b[r.at-1])
	}
	n, size := binary.Uvarint(r.b[r.at:min(len(r.b), r.at+5)])
	switch {
	case size <= 0 && len(r.b)-r.at < 5:
		r.fail(errTruncated)
		return 0
	case size <= 0 || n > 1<<32-1:
		r.fail(errNumber)
		return 0
	}
	r.at += size
	return uint32(n)
}

// signed reads a signed number of at most so many bits.
func (r *reader) signed(bits uint) int64 {
	var n int64
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if left := bits - shift; left < 7 { // the last byte: what does not fit repeats the sign
			spare := int8(b<<1) >> left // of seven bits, those from the sign on
			if b >= 0x80 || spare != 0 && spare != -1 {
				r.fail(errNumber)
				return 0
			}
		}
		n |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				n |= -1 << (shift + 7)
			}
			return n
		}
	}
}
