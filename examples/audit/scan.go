package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

const (
	pieceSize   = 256 << 10
	headerLines = 30
	headerBytes = 16 << 10 // a header that has not begun by then is none; it bounds what a file of one endless line costs
)

// Scanner audits one file after the other. Its memory does not grow with a file's size or with the length of its lines.
type Scanner struct {
	digest hash.Hash
	keys   finder
	piece  []byte
	head   []byte // the first lines, as far as seen
}

// NewScanner returns a Scanner that is ready for its first file.
func NewScanner() *Scanner {
	return &Scanner{digest: sha256.New(), piece: make([]byte, pieceSize)}
}

// Scan reads r to its end and returns the record of it, under the path given.
func (s *Scanner) Scan(path string, r io.Reader) (Record, error) {
	s.digest.Reset()
	s.keys.reset()
	s.head = s.head[:0]
	record := Record{Path: path}
	open := int64(0) // bytes of the line that has not ended yet
	for {
		n, err := r.Read(s.piece)
		piece := s.piece[:n]
		s.digest.Write(piece)
		s.keys.feed(piece)
		s.head = append(s.head, piece[:min(n, headerBytes-len(s.head))]...)
		open = record.measure(piece, open)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Record{}, err
		}
	}
	if open > 0 {
		record.Lines++
		record.Longest = max(record.Longest, open)
	}
	s.digest.Sum(record.Digest[:0])
	record.Keys = s.keys.finish()
	record.Licensed = licensed(s.head)
	return record, nil
}

// measure adds a piece's bytes and lines to the record. It takes and returns the length of the line that the piece's edge cuts.
func (r *Record) measure(piece []byte, open int64) int64 {
	r.Bytes += int64(len(piece))
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			return open + int64(len(piece))
		}
		r.Lines++
		r.Longest = max(r.Longest, open+int64(end))
		open = 0
		piece = piece[end+1:]
	}
}

// licensed reports whether the first lines of a text speak of a copyright or a licence, in any case of letters.
func licensed(head []byte) bool {
	for n := 0; n < headerLines && len(head) > 0; n++ {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		line = bytes.ToLower(line)
		for _, word := range []string{"copyright", "license", "licence", "public domain"} {
			if bytes.Contains(line, []byte(word)) {
				return true
			}
		}
		head = rest
	}
	return false
}
