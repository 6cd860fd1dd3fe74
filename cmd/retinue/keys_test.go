package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/retinue-sched/retinue/daemon"
)

var update = flag.Bool("update", false, "write docs/application.md anew")

const applicationFile = "../../docs/application.md"

// The reference of what `apply` reads is what the code says. After a change: go test ./cmd/retinue -run ApplicationReference -update
func TestApplicationReferenceIsFresh(t *testing.T) {
	fresh := applicationReference(t)
	if *update {
		if err := os.WriteFile(applicationFile, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(applicationFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != fresh {
		t.Errorf("%s is not what the code says; run: go test ./cmd/retinue -run ApplicationReference -update", applicationFile)
	}
}

func applicationReference(t *testing.T) string {
	t.Helper()
	example, err := os.ReadFile("../../examples/app.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# What `+"`retinue apply`"+` reads

Made from the code by `+"`go test ./cmd/retinue -run ApplicationReference -update`"+`; a test keeps it fresh. `+"`retinue help manifest`"+` shows the same.

A file holds YAML, one application in each document:

`+"```yaml\n%s```"+`

A key that is not below is refused, with its line. Durations are written 10s or 1m30s; 0s is none.
The defaults are those of a daemon whose own configuration ([configuration.md](configuration.md), section application) says nothing else.
The same file again changes nothing; another one changes the application while it works. What pods are made of (image, command, env, cpu,
memory, labels, annotations, podTemplate) holds for executors that are created from then on; those that run stay as they are.
Profiles are neither removed, renamed nor moved; new ones go to the end.

| key | type | default | meaning |
|---|---|---|---|
`, example)
	for _, k := range applicationKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.path, k.kind, k.usual, k.meaning)
	}
	return b.String()
}

// Every key that the parser takes is told of, and no key that it does not take.
func TestEveryKeyIsTold(t *testing.T) {
	var paths []string
	for _, k := range applicationKeys() {
		paths = append(paths, k.path)
		if k.usual == "" || k.meaning == "" {
			t.Errorf("%s: keysTold does not say what it means, and what holds without it", k.path)
		}
	}
	for path := range keysTold {
		if !slices.Contains(paths, path) {
			t.Errorf("keysTold tells of %s, which the parser does not take", path)
		}
	}
}

// The defaults that are told are those of a daemon that is not configured.
func TestDefaultsAreTold(t *testing.T) {
	def := daemon.DefaultConfig().Application
	for path, want := range map[string]any{
		"maxTaskAttempts": def.MaxTaskAttempts, "profiles[].slots": def.Slots, "profiles[].batchSize": def.BatchSize,
		"profiles[].idleTimeout": def.IdleTimeout, "profiles[].creationTimeout": def.CreationTimeout,
		"profiles[].dynamicAllocation.backlogTimeout": def.Backlog,
	} {
		if got := keysTold[path].usual; got != fmt.Sprint(want) {
			t.Errorf("%s is told to be %s when left out, and is %v", path, got, want)
		}
	}
}
