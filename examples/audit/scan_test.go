package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestScanCounts(t *testing.T) {
	header := func(at int) string { return strings.Repeat("\n", at-1) + "// LICENSE: see there\n" }
	for _, test := range []struct {
		name, text string
		want       Record
	}{
		{"nothing", "", Record{}},
		{"one open line", "abc", Record{Lines: 1, Longest: 3}},
		{"a newline ends a line and begins none", "abc\n", Record{Lines: 1, Longest: 3}},
		{"the longest is neither first nor last", "a\nabcde\nabc\n", Record{Lines: 3, Longest: 5}},
		{"the longest is the open one", "a\nabcde", Record{Lines: 2, Longest: 5}},
		{"a header in line 30", header(30), Record{Lines: 30, Longest: 21, Licensed: true}},
		{"a header in line 31", header(31), Record{Lines: 31, Longest: 21}},
		{"a line longer than any piece", strings.Repeat("x", 3*pieceSize) + "\n", Record{Lines: 1, Longest: 3 * pieceSize}},
		{
			"keys", "-----BEGIN PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
			Record{Lines: 3, Longest: 37, Keys: [kinds]Find{PrivateKey: {2, 1}, PEM: {1, 2}}},
		},
		{"a key without end is none", "-----BEGIN PRIVATE KEY\n-----\n", Record{Lines: 2, Longest: 22}},
		{"an access key id", "\nAKIAIOSFODNN7EXAMPLE", Record{Lines: 2, Longest: 20, Keys: [kinds]Find{AWSKeyID: {1, 2}}}},
		{"an access key id of a session", "(ASIAIOSFODNN7EXAMPLE)", Record{Lines: 1, Longest: 22, Keys: [kinds]Find{AWSKeyID: {1, 1}}}},
		{
			"the first of two kinds of access key ids", "ASIAIOSFODNN7EXAMPLE\nAKIAIOSFODNN7EXAMPLE\n",
			Record{Lines: 2, Longest: 20, Keys: [kinds]Find{AWSKeyID: {2, 1}}},
		},
		{"too long for an access key id", "AKIAIOSFODNN7EXAMPLEX", Record{Lines: 1, Longest: 21}},
		{"too short for an access key id", "AKIAIOSFODNN7EXAMPL.", Record{Lines: 1, Longest: 20}},
		{"an access key id inside a word", "xAKIAIOSFODNN7EXAMPLE", Record{Lines: 1, Longest: 21}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Path = test.name
			test.want.Bytes = int64(len(test.text))
			test.want.Digest = sha256.Sum256([]byte(test.text))
			got, err := NewScanner().Scan(test.name, strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A record depends on a file's bytes, not on how they come in, and not on the file that the Scanner read before.
func TestScanDoesNotSeePieces(t *testing.T) {
	fragment := rapid.SampledFrom([]string{
		"-----BEGIN ", "PRIVATE KEY", "-----", "RSA ", "\n", "AKIA", "IOSFODNN7EXAMPLE", " ", "x", "copyright", strings.Repeat("y", 90),
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(fragment).Draw(t, "text"), "")
		used := NewScanner()
		for _, earlier := range []string{"AKIA", "-----BEGIN PRIVATE KEY-----\ncopyright"} {
			if _, err := used.Scan("earlier", strings.NewReader(earlier)); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := NewScanner().Scan("file", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		single, err := used.Scan("file", iotest.OneByteReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, single); diff != "" {
			t.Errorf("byte by byte (-whole +single):\n%s", diff)
		}
	})
}

// A key that lies across the edge of two pieces is found once, on its line.
func TestKeyAcrossPieces(t *testing.T) {
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
	for shift := range len(key) + 1 {
		text := "\n" + strings.Repeat("z", pieceSize-2-shift) + "\n" + key + key
		got, err := NewScanner().Scan("file", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := (Find{Count: 2, Line: 3}); got.Keys[PrivateKey] != want {
			t.Fatalf("shifted by %d: found %+v, want %+v", shift, got.Keys[PrivateKey], want)
		}
	}
}

// Nothing is said about a file that could not be read to its end.
func TestScanReportsReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := NewScanner().Scan("file", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte("func (s *Scanner) Scan(path string, r io.Reader) (Record, error) {\n"), 16<<10)
	scanner := NewScanner()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := scanner.Scan("file", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
