package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Help says of every key what it is for, what kind of value it takes, and what it is if nothing is said.
func TestHelpExplainsEveryKey(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("XDG_STATE_HOME", "/var/s")
	var out bytes.Buffer
	if err := printUsage(&out); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\s+`).ReplaceAllString(out.String(), " ")
	for _, key := range keys {
		if usages()[key] == "" || !strings.Contains(text, "--"+key+" ") {
			t.Errorf("%s is not explained", key)
		}
	}
	for _, want := range []string{
		`--state string the folder for the little that must outlive the process. (default "/var/s/retinue/retinued")`,
		`(default "/var/s/retinue/retinued.sock")`, "--actuator.calls int ", "--actuator.timeout duration ", "(default 15s)", "--namespaces strings ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("help has no %q:\n%s", want, &out)
		}
	}
}

// The meanings in the program are those of the comments. After a change: go test ./cmd/retinued -run Reference -update
func TestReferenceInHelpIsFresh(t *testing.T) {
	var b strings.Builder
	for _, e := range entries(t) {
		b.WriteString(e.key + "\t" + e.meaning + "\n")
	}
	if *update {
		if err := os.WriteFile("meanings.tsv", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile("meanings.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != b.String() {
		t.Error("meanings.tsv is not what the comments say; run: go test ./cmd/retinued -run Reference -update")
	}
}
