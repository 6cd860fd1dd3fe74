package main

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tree = "testdata/tree"

// audit runs the program and returns what it prints.
func audit(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := run(args, strings.NewReader(stdin), &stdout, &stderr)
	return stdout.String(), err
}

func mustAudit(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := audit(t, stdin, args...)
	if err != nil {
		t.Fatalf("audit %q: %v", args, err)
	}
	return out
}

func TestListNamesFoldersWithFiles(t *testing.T) {
	got := mustAudit(t, "", "list", "-root", tree)
	if diff := cmp.Diff(".\npkg\npkg/inner\n", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Lists are in the order of the paths' bytes, which is not the order of a walk.
func TestListIsSorted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/z/f", "a-b/f", "a/f"} {
		write(t, filepath.Join(dir, name), "")
	}
	got := mustAudit(t, "", "list", "-root", dir)
	if diff := cmp.Diff("a\na-b\na/z\n", got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Links are neither listed nor audited, wherever they point.
func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/file"), "text\n")
	for link, target := range map[string]string{"b": "a", "a/loop": ".", "a/file2": "file"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustAudit(t, "", "list", "-root", dir); got != "a\n" {
		t.Errorf("listed %q, want only a", got)
	}
	if got := mustAudit(t, "", "-root", dir, "a"); strings.Count(got, "\n") != 1 {
		t.Errorf("audited %q, want one record", got)
	}
}

// The report of a plain run is in testdata, so that a change of it is seen.
func TestRunReport(t *testing.T) {
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := mustAudit(t, "", "run", "-root", tree)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Reducing the pieces, in any order, from files or from standard input, gives the bytes of a plain run.
func TestReducedPiecesEqualRun(t *testing.T) {
	want := mustAudit(t, "", "run", "-root", tree)
	folders := strings.Fields(mustAudit(t, "", "list", "-root", tree))
	rand.Shuffle(len(folders), func(i, j int) { folders[i], folders[j] = folders[j], folders[i] })

	var files []string
	var all strings.Builder
	for _, folder := range folders {
		piece := mustAudit(t, "", "-root", tree, folder)
		all.WriteString(piece)
		file := filepath.Join(t.TempDir(), "piece")
		write(t, file, piece)
		files = append(files, file)
	}
	if diff := cmp.Diff(want, mustAudit(t, "", append([]string{"reduce"}, files...)...)); diff != "" {
		t.Errorf("from files (-run +reduce):\n%s", diff)
	}
	if diff := cmp.Diff(want, mustAudit(t, all.String(), "reduce")); diff != "" {
		t.Errorf("from standard input (-run +reduce):\n%s", diff)
	}
}

// Bad input gives one sentence that names it, and no output.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	record := string(Record{Path: "twice"}.AppendLine(nil))
	write(t, filepath.Join(dir, "plain"), "")
	write(t, filepath.Join(dir, "twice"), record+record)
	write(t, filepath.Join(dir, "huge"), record+strings.Repeat("x", 2*longestRecord))
	write(t, filepath.Join(dir, "foreign"), "hello\n")
	in := func(name string) string { return filepath.Join(dir, name) }

	for _, test := range []struct {
		name string
		args []string
		want []string
	}{
		{"no arguments", nil, []string{"-root is missing", "audit -h"}},
		{"no folder", []string{"-root", dir}, []string{"no folder to audit", "audit -h"}},
		{"an unknown flag", []string{"-roof", dir}, []string{"-roof", "audit -h"}},
		{"folders for list", []string{"list", "-root", dir, "x"}, []string{"list takes no folders"}},
		{"folders for run", []string{"run", "-root", dir, "x"}, []string{"run takes no folders"}},
		{"a missing root", []string{"list", "-root", in("nowhere")}, []string{"opening the root", "nowhere", "no such file"}},
		{"a missing folder", []string{"-root", dir, "nowhere"}, []string{`auditing folder "nowhere"`, "no such file"}},
		{"a missing folder after a good one", []string{"-root", dir, ".", "nowhere"}, []string{`auditing folder "nowhere"`}},
		{"a file for a folder", []string{"-root", dir, "plain"}, []string{`auditing folder "plain"`, "not a directory"}},
		{"a folder outside", []string{"-root", dir, "../x"}, []string{`"../x"`, "not a path below the root"}},
		{"a missing output", []string{"reduce", in("nowhere")}, []string{"reading records", "nowhere", "no such file"}},
		{"a text of another kind", []string{"reduce", in("foreign")}, []string{"foreign:1", "is this the output of audit?"}},
		{"a huge line", []string{"reduce", in("huge")}, []string{"huge:2", "longer than any record"}},
		{"a file twice", []string{"reduce", in("twice")}, []string{`two records of "twice"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := audit(t, "", test.args...)
			if err == nil || out != "" {
				t.Fatalf("output %q, error %v; want no output and an error", out, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has more than one line: %q", err)
			}
		})
	}
}

// A file that may not be read is an error that names it, not a hole in the report.
func TestUnreadableFile(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read every file")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/secret"), "text\n")
	if err := os.Chmod(filepath.Join(dir, "a/secret"), 0); err != nil {
		t.Fatal(err)
	}
	out, err := audit(t, "", "run", "-root", dir)
	if err == nil || out != "" || !strings.Contains(err.Error(), "a/secret") {
		t.Errorf("output %q, error %v; want no output and an error that names a/secret", out, err)
	}
}

// Of lines that are equally long, the first path's is named.
func TestLongestLineOfEqualOnes(t *testing.T) {
	records := append(Record{Path: "b", Longest: 5}.AppendLine(nil), Record{Path: "a", Longest: 5}.AppendLine(nil)...)
	got := mustAudit(t, string(records), "reduce")
	if !strings.Contains(got, "longest line\t5\ta\n") {
		t.Errorf("report is\n%s\nwant a's line as the longest", got)
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run([]string{"-h"}, nil, &stdout, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error %v, want %v", err, flag.ErrHelp)
	}
	if !strings.Contains(stderr.String(), "audit reduce [FILE...]") {
		t.Errorf("help is %q", stderr.String())
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
