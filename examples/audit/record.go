package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Record is what an audit says about one file. It is one line of text: seven columns with tabs between them.
type Record struct {
	Path     string // relative to the root, with slashes
	Digest   [sha256.Size]byte
	Bytes    int64
	Lines    int64 // a last line without its newline counts
	Licensed bool  // one of the first 30 lines speaks of a copyright or a licence
	Longest  int64 // bytes of the longest line, without its newline
	Keys     [kinds]Find
}

// Find says how often something was found in a file, and on which line first. Its zero value is: not at all.
type Find struct {
	Count, Line int64
}

const (
	columns = 7
	// longestRecord is more than any record takes: a path of 4096 bytes, all of them escaped, and the numbers.
	longestRecord = 32 << 10
)

// AppendLine appends the record's line, newline included.
func (r Record) AppendLine(b []byte) []byte {
	b = append(b, quotePath(r.Path)...)
	b = append(b, '\t')
	b = hex.AppendEncode(b, r.Digest[:])
	for _, n := range []int64{r.Bytes, r.Lines, r.Longest} {
		b = append(b, '\t')
		b = strconv.AppendInt(b, n, 10)
	}
	b = append(b, '\t')
	b = append(b, licenceWord(r.Licensed)...)
	b = append(b, '\t')
	b = appendFinds(b, r.Keys)
	return append(b, '\n')
}

// ParseRecord reads a record's line (without its newline). Only what AppendLine writes is accepted.
func ParseRecord(line string) (Record, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != columns {
		return Record{}, fmt.Errorf("%d columns, want %d: is this the output of audit?", len(fields), columns)
	}
	path, err := unquotePath(fields[0])
	if err != nil {
		return Record{}, err
	}
	r := Record{Path: path, Licensed: fields[5] == licenceWord(true)}
	digest, err := hex.DecodeString(fields[1])
	if err != nil || len(digest) != sha256.Size {
		return Record{}, fmt.Errorf("digest %q is not %d hexadecimal digits", fields[1], 2*sha256.Size)
	}
	r.Digest = [sha256.Size]byte(digest)
	for i, n := range []*int64{&r.Bytes, &r.Lines, &r.Longest} {
		if *n, err = strconv.ParseInt(fields[2+i], 10, 64); err != nil {
			return Record{}, fmt.Errorf("%q is not a number", fields[2+i])
		}
	}
	if r.Keys, err = parseFinds(fields[6]); err != nil {
		return Record{}, err
	}
	if string(r.AppendLine(nil)) != line+"\n" {
		return Record{}, fmt.Errorf("%q is not written as audit writes it", line)
	}
	return r, nil
}

func licenceWord(licensed bool) string {
	if licensed {
		return "licensed"
	}
	return "unlicensed"
}

// quotePath leaves an ordinary path alone and quotes one that would break the columns, so that every name a file can have survives.
func quotePath(path string) string {
	if quoted := strconv.Quote(path); len(quoted) != len(path)+2 {
		return quoted
	}
	return path
}

func unquotePath(field string) (string, error) {
	if !strings.HasPrefix(field, `"`) {
		return field, nil
	}
	path, err := strconv.Unquote(field)
	if err != nil {
		return "", fmt.Errorf("path %s is badly quoted", field)
	}
	return path, nil
}

// appendFinds writes what was found as kind=count@line, comma between; a dash when nothing was.
func appendFinds(b []byte, finds [kinds]Find) []byte {
	start := len(b)
	for kind, find := range finds {
		if find.Count == 0 {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%s=%d@%d", Kind(kind), find.Count, find.Line)
	}
	if len(b) == start {
		b = append(b, '-')
	}
	return b
}

func parseFinds(field string) (finds [kinds]Find, err error) {
	if field == "-" {
		return finds, nil
	}
	for item := range strings.SplitSeq(field, ",") {
		name, rest, _ := strings.Cut(item, "=")
		count, line, _ := strings.Cut(rest, "@")
		kind, known := kindNamed(name)
		n, errCount := strconv.ParseInt(count, 10, 64)
		at, errLine := strconv.ParseInt(line, 10, 64)
		if !known || errCount != nil || errLine != nil {
			return finds, fmt.Errorf("%q is not kind=count@line", item)
		}
		finds[kind] = Find{Count: n, Line: at}
	}
	return finds, nil
}
