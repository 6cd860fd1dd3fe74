package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report gathers records, in any order and from any number of outputs, into one text that depends on nothing but the records.
type Report struct {
	records []Record
}

// Add takes records.
func (r *Report) Add(records ...Record) {
	r.records = append(r.records, records...)
}

// Read takes the records of one output of audit. The name is for the error.
func (r *Report) Read(name string, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestRecord)
	n := 0
	for lines.Scan() {
		n++
		record, err := ParseRecord(lines.Text())
		if err != nil {
			return fmt.Errorf("reading records: %s:%d: %w", name, n, err)
		}
		r.Add(record)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("reading records: %s:%d: longer than any record (%d bytes): is this the output of audit?", name, n+1, longestRecord)
	} else if err != nil {
		return fmt.Errorf("reading records: %s: %w", name, err)
	}
	return nil
}

// Print writes the report: the records sorted by path, an empty line, the summary. A file that is there twice is an error, because it
// would be counted twice.
func (r *Report) Print(w io.Writer) error {
	slices.SortStableFunc(r.records, func(a, b Record) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(r.records); i++ {
		if r.records[i].Path == r.records[i-1].Path {
			return fmt.Errorf("reducing: there are two records of %q: give each folder's output once", r.records[i].Path)
		}
	}
	text := appendRecords(nil, r.records)
	text = append(text, '\n')
	text = r.summarize().append(text)
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func appendRecords(b []byte, records []Record) []byte {
	for _, record := range records {
		b = record.AppendLine(b)
	}
	return b
}

// summary is what a report says about all files together.
type summary struct {
	files, bytes, lines, unlicensed int64
	longest                         int64
	longestPath                     string // the first of them
	keys                            [kinds]int64
}

func (r *Report) summarize() summary {
	var s summary
	for _, record := range r.records {
		s.files++
		s.bytes += record.Bytes
		s.lines += record.Lines
		if !record.Licensed {
			s.unlicensed++
		}
		if record.Longest > s.longest {
			s.longest, s.longestPath = record.Longest, record.Path
		}
		for kind, find := range record.Keys {
			s.keys[kind] += find.Count
		}
	}
	return s
}

func (s summary) append(b []byte) []byte {
	b = fmt.Appendf(b, "files\t%d\nbytes\t%d\nlines\t%d\nunlicensed\t%d\n", s.files, s.bytes, s.lines, s.unlicensed)
	if s.longestPath != "" {
		b = fmt.Appendf(b, "longest line\t%d\t%s\n", s.longest, quotePath(s.longestPath))
	}
	for kind, count := range s.keys {
		b = fmt.Appendf(b, "%s\t%d\n", Kind(kind), count)
	}
	return b
}
