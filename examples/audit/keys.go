package main

import (
	"bytes"
	"strings"
)

// Kind is a kind of embedded key.
type Kind uint8

// The kinds, in the order in which a record lists them.
const (
	PrivateKey Kind = iota // the first line of a private key in PEM
	PEM                    // the first line of any other PEM block
	AWSKeyID               // an AWS access key id
	kinds
)

func (k Kind) String() string {
	return [kinds]string{"private-key", "pem", "aws-key-id"}[k]
}

func kindNamed(name string) (Kind, bool) {
	for k := range kinds {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

const (
	pemBegin  = "-----BEGIN "
	pemEnd    = "-----"
	longLabel = 64                                      // no label of a PEM block in use is longer
	longMatch = len(pemBegin) + longLabel + len(pemEnd) // no key's pattern is longer
	awsKeyLen = 20                                      // four letters of prefix and sixteen more
)

// finder looks for embedded keys in a stream of bytes. Its findings do not depend on how the stream is cut into pieces.
type finder struct {
	finds  [kinds]Find
	window []byte // the bytes from which a match may still begin, after one byte of what came before (none at the stream's start)
	before int    // how many bytes of the window only show what came before: 0 or 1
	lines  int64  // newlines before the window
}

func (f *finder) reset() {
	*f = finder{window: f.window[:0]}
}

// feed takes the next piece.
func (f *finder) feed(piece []byte) {
	f.window = append(f.window, piece...)
	f.search(len(f.window) - longMatch) // a match that begins later may go on in the next piece
}

// finish says what was found in all.
func (f *finder) finish() [kinds]Find {
	f.search(len(f.window))
	return f.finds
}

// search looks for matches that begin before limit, and then drops what is no longer needed.
func (f *finder) search(limit int) {
	if limit <= f.before {
		return
	}
	f.each(pemBegin, limit, pemKind)
	f.each("AKIA", limit, awsKind)
	f.each("ASIA", limit, awsKind)
	keep := limit - 1
	f.lines += int64(bytes.Count(f.window[:keep], []byte("\n")))
	f.window = append(f.window[:0], f.window[keep:]...)
	f.before = 1
}

// each shows every occurrence of a prefix to match, and counts those that it recognises.
func (f *finder) each(prefix string, limit int, match func(window []byte, at int) (Kind, bool)) {
	for at := f.before; ; at++ {
		next := bytes.Index(f.window[at:], []byte(prefix))
		if next < 0 || at+next >= limit {
			return
		}
		at += next
		if kind, ok := match(f.window, at); ok {
			f.count(kind, at)
		}
	}
}

func (f *finder) count(kind Kind, at int) {
	find := &f.finds[kind]
	line := f.lines + 1 + int64(bytes.Count(f.window[:at], []byte("\n")))
	if find.Count == 0 || line < find.Line {
		find.Line = line
	}
	find.Count++
}

// pemKind recognises -----BEGIN LABEL----- at a place of the window.
func pemKind(window []byte, at int) (Kind, bool) {
	rest := window[at+len(pemBegin):]
	rest = rest[:min(len(rest), longLabel+len(pemEnd))]
	end := bytes.Index(rest, []byte(pemEnd))
	if end < 0 {
		return 0, false
	}
	label := string(rest[:end])
	switch {
	case strings.Trim(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ") != "":
		return 0, false
	case strings.Contains(label, "PRIVATE KEY"):
		return PrivateKey, true
	}
	return PEM, true
}

// awsKind recognises an access key id at a place of the window: twenty capitals and digits, and no more of them around.
func awsKind(window []byte, at int) (Kind, bool) {
	end := at + awsKeyLen
	if end > len(window) || (at > 0 && wordByte(window[at-1])) || (end < len(window) && wordByte(window[end])) {
		return 0, false
	}
	for _, c := range window[at:end] {
		if !capitalOrDigit(c) {
			return 0, false
		}
	}
	return AWSKeyID, true
}

func capitalOrDigit(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

func wordByte(c byte) bool { return capitalOrDigit(c) || 'a' <= c && c <= 'z' || c == '_' }
