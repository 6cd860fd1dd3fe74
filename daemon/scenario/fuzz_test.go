package scenario_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/retinue-sched/retinue/daemon/scenario"
)

// No bytes stop the reader, and no story that it lets through stops the runner: both answer with an error.
func FuzzLoad(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "spark_allocator.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("- name: x\n  steps: [{target: {4294967295: 4294967295}}, {pods: [[9223372036854775807, Running, 4294967295]], known: [1], purge: true, pass: true}]"))
	f.Add([]byte("- name: x\n  steps: [{at: 3162240000000, pass: true, expect: {created: [], deletes: [[]]}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := scenario.Load(bytes.NewReader(text), "f")
		if err != nil {
			return
		}
		for _, s := range list {
			_ = scenario.Run(t.Context(), s, nativeDirect) // that it returns is the claim
		}
	})
}
