package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var anyRecord = rapid.Custom(func(t *rapid.T) Record {
	r := Record{
		Path:     rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z\t\n"\\]+`)).Draw(t, "path"),
		Bytes:    rapid.Int64Min(0).Draw(t, "bytes"),
		Lines:    rapid.Int64Min(0).Draw(t, "lines"),
		Longest:  rapid.Int64Min(0).Draw(t, "longest"),
		Licensed: rapid.Bool().Draw(t, "licensed"),
	}
	copy(r.Digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
	for kind := range r.Keys {
		if count := rapid.Int64Range(0, 9).Draw(t, "count"); count > 0 {
			r.Keys[kind] = Find{Count: count, Line: rapid.Int64Min(1).Draw(t, "line")}
		}
	}
	return r
})

// A record is one line, whatever its path holds, and reading it gives it back.
func TestRecordSurvivesItsLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRecord.Draw(t, "record")
		line, found := strings.CutSuffix(string(want.AppendLine(nil)), "\n")
		if !found || strings.Contains(line, "\n") {
			t.Fatalf("not one line: %q", line)
		}
		got, err := ParseRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("record changed (-want +got):\n%s", diff)
		}
	})
}

// What audit would not have written is refused with what is wrong about it.
func TestParseRecordRefuses(t *testing.T) {
	good := strings.TrimSuffix(string(Record{Path: "a/b"}.AppendLine(nil)), "\n")
	if _, err := ParseRecord(good); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, old, new, want string }{
		{"a missing column", "\t-", "", "6 columns, want 7"},
		{"a short digest", "00000000", "", "hexadecimal"},
		{"a digest with letters", "00", "zz", "hexadecimal"},
		{"a number in words", "\t0\t", "\tnone\t", `"none" is not a number`},
		{"a number with zeros", "\t0\t", "\t00\t", "not written as audit"},
		{"an odd licence word", "unlicensed", "maybe", "not written as audit"},
		{"an unknown kind of key", "-", "gpg=1@1", "kind=count@line"},
		{"a key without line", "-", "pem=1", "kind=count@line"},
		{"a bad quote", "a/b", `"a/b`, "badly quoted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseRecord(strings.Replace(good, test.old, test.new, 1))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
