package task_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/task"
)

func good() *task.Spec {
	return &task.Spec{
		Key: "count/runtime", Job: "audit", Command: []string{"wc", "-l", ""}, Env: []task.Env{{Name: "LC_ALL", Value: "C=1"}},
		Input: []byte{0, 1}, Directory: "/data", Files: []task.File{{Name: "in/a..b", Path: "/src/a"}, {Name: "in/b", Path: "/src/b"}, {Name: "in-c", Path: "/c"}},
		Timeout: time.Minute, KillGrace: time.Second, Deadline: time.Hour,
	}
}

// A spec is refused with the field that is wrong, and only for what is wrong.
func TestValidateNamesTheField(t *testing.T) {
	if err := task.Validate(good()); err != nil {
		t.Errorf("a good task: %v", err)
	}
	for field, spoil := range map[string]func(*task.Spec){
		"key: is empty":                                func(s *task.Spec) { s.Key = "" },
		`key: "a\n" has a control character`:           func(s *task.Spec) { s.Key = "a\n" },
		"key: 257 bytes":                               func(s *task.Spec) { s.Key = strings.Repeat("k", 257) },
		`job: "\xff" is not UTF-8`:                     func(s *task.Spec) { s.Job = "\xff" },
		"command: is empty":                            func(s *task.Spec) { s.Command = nil },
		"command: is empty: its first":                 func(s *task.Spec) { s.Command = []string{""} },
		`command[1]: "a\x00b" has a NUL byte`:          func(s *task.Spec) { s.Command = []string{"x", "a\x00b"} },
		"command: 4097 elements":                       func(s *task.Spec) { s.Command = make([]string, 4097); s.Command[0] = "x" },
		"command[0]: 131073 bytes":                     func(s *task.Spec) { s.Command = []string{strings.Repeat("x", 128<<10+1)} },
		`env[0].name: "A=B" has`:                       func(s *task.Spec) { s.Env = []task.Env{{Name: "A=B"}} },
		"env[1].name: is empty":                        func(s *task.Spec) { s.Env = append(s.Env, task.Env{}) },
		"env[0].value: ":                               func(s *task.Spec) { s.Env[0].Value = "\x00" },
		`directory: "data" is not absolute`:            func(s *task.Spec) { s.Directory = "data" },
		`files[0].name: "/etc/passwd" is not a plain`:  func(s *task.Spec) { s.Files[0].Name = "/etc/passwd" },
		`files[0].name: "a/../../b" is`:                func(s *task.Spec) { s.Files[0].Name = "a/../../b" },
		`files[1].name: ".." is`:                       func(s *task.Spec) { s.Files[1].Name = ".." },
		`files[1].name: "" is`:                         func(s *task.Spec) { s.Files[1].Name = "" },
		`files[1].name: "a/" is`:                       func(s *task.Spec) { s.Files[1].Name = "a/" },
		`files[1].path: "b" is not absolute`:           func(s *task.Spec) { s.Files[1].Path = "b" },
		`files: the name "in/b" is given twice`:        func(s *task.Spec) { s.Files[0].Name = "in/b" },
		`files: "in/b" cannot be below "in"`:           func(s *task.Spec) { s.Files[0].Name = "in" },
		"input: 1048577 bytes":                         func(s *task.Spec) { s.Input = make([]byte, 1<<20+1) },
		"max_attempts: 1001":                           func(s *task.Spec) { s.MaxAttempts = 1001 },
		"timeout: -1ns":                                func(s *task.Spec) { s.Timeout = -1 },
		"kill_grace: -1ns":                             func(s *task.Spec) { s.KillGrace = -1 },
		"deadline: -1ns":                               func(s *task.Spec) { s.Deadline = -1 },
		"deadline: 8760h0m0.000000001s is not between": func(s *task.Spec) { s.Deadline = 365*24*time.Hour + 1 },
		"task: 2228242 bytes in all are more than 2097152": func(s *task.Spec) {
			*s = task.Spec{Key: "k", Command: []string{"x"}}
			for range 17 {
				s.Command = append(s.Command, strings.Repeat("x", 128<<10))
			}
			s.Input = make([]byte, 16)
		},
	} {
		s := good()
		spoil(s)
		if err := task.Validate(s); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("error %q, want one that begins with %q", fmt.Sprint(err), field)
		}
	}
}

// All faults are told at once, but not thousands.
func TestValidateReportsEverything(t *testing.T) {
	err := task.Validate(&task.Spec{Timeout: -1})
	if got := strings.Split(fmt.Sprint(err), "\n"); len(got) != 3 {
		t.Errorf("faults %q, want those of key, command and timeout", got)
	}
	err = task.Validate(&task.Spec{Key: "k", Command: []string{"x"}, Env: make([]task.Env, 4000)})
	if got := strings.Split(fmt.Sprint(err), "\n"); len(got) != 20 {
		t.Errorf("%d faults are told, want 20", len(got))
	}
}
