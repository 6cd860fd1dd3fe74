package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// The flags and the command become tasks.
func TestMakeJob(t *testing.T) {
	cases := map[string]struct {
		o       runOptions
		command []string
		stdin   string
		want    []*apiv1.TaskSpec
	}{
		"one command": {
			o: runOptions{
				profile: "big", directory: "/data", env: []string{"A=1=2", "B="}, files: []string{"in/x=/x"}, timeout: time.Minute, deadline: time.Hour, maxAttempts: 2, input: "-",
			},
			command: []string{"wc", "{}"}, stdin: "text",
			want: []*apiv1.TaskSpec{{
				Profile: "big", Directory: "/data", Command: []string{"wc", "{}"}, Input: []byte("text"), MaxAttempts: 2, Timeout: durationpb.New(time.Minute),
				Deadline: durationpb.New(time.Hour),
				Env:      []*apiv1.EnvVar{{Name: "A", Value: "1=2"}, {Name: "B"}}, Files: []*apiv1.FileRef{{Name: "in/x", Path: "/x"}},
			}},
		},
		"a line each": {
			o: runOptions{each: "-", env: []string{"A=1"}}, command: []string{"cp", "{}", "{}.old"}, stdin: "a b\n\n  \n{}\r\nlast",
			want: []*apiv1.TaskSpec{
				{Command: []string{"cp", "a b", "a b.old"}, Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}}},
				{Command: []string{"cp", "{}", "{}.old"}, Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}}},
				{Command: []string{"cp", "last", "last.old"}, Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}}},
			},
		},
		"tasks in a file": {
			o: runOptions{tasks: "-", env: []string{"A=1", "B=2"}, profile: "small", timeout: time.Minute, deadline: time.Hour, files: []string{"x=/x"}},
			stdin: `
- {key: a, command: [echo, 1], env: {B: own}, timeout: 5s, deadline: 10s, input: "hello"}
- command: [true]
  profile: big
  files: [{name: y, path: /y}]
---
key: alone
command: [date]
---
# nothing here
`,
			want: []*apiv1.TaskSpec{
				{
					Key: "a", Profile: "small", Command: []string{"echo", "1"}, Timeout: durationpb.New(5 * time.Second), Deadline: durationpb.New(10 * time.Second), Input: []byte("hello"),
					Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "own"}}, Files: []*apiv1.FileRef{{Name: "x", Path: "/x"}},
				},
				{
					Profile: "big", Command: []string{"true"}, Timeout: durationpb.New(time.Minute), Deadline: durationpb.New(time.Hour),
					Env:   []*apiv1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
					Files: []*apiv1.FileRef{{Name: "x", Path: "/x"}, {Name: "y", Path: "/y"}},
				},
				{
					Key: "alone", Profile: "small", Command: []string{"date"}, Timeout: durationpb.New(time.Minute), Deadline: durationpb.New(time.Hour),
					Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}, Files: []*apiv1.FileRef{{Name: "x", Path: "/x"}},
				},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			job, err := c.o.makeJob(c.command, strings.NewReader(c.stdin))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, job.Tasks, protocmp.Transform()); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// What does not make sense is refused as wrong usage, with what to write instead.
func TestMakeJobRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{"echo", "{}"}
	cases := map[string]struct {
		o       runOptions
		command []string
		stdin   string
		want    string
	}{
		"no command":        {want: "run takes a command"},
		"two lists":         {o: runOptions{tasks: "-"}, command: command, want: "the commands are in the file"},
		"stdin twice":       {o: runOptions{each: "-", input: "-"}, command: command, want: "standard input cannot be both"},
		"no braces":         {o: runOptions{each: empty}, command: []string{"echo"}, want: "no word of the command holds {}"},
		"no lines":          {o: runOptions{each: empty}, command: command, want: "the list has no lines"},
		"no list":           {o: runOptions{each: "/nowhere"}, command: command, want: "reading the list: open /nowhere"},
		"no input":          {o: runOptions{input: "/nowhere"}, command: command, want: "reading the input: open /nowhere"},
		"a past deadline":   {o: runOptions{deadline: -1}, command: command, want: "--deadline -1ns is over before the task begins"},
		"a variable":        {o: runOptions{env: []string{"NAME"}}, command: command, want: `--env "NAME" is not NAME=VALUE`},
		"a file":            {o: runOptions{files: []string{"x"}}, command: command, want: `--file "x" is not NAME=PATH`},
		"no tasks":          {o: runOptions{tasks: "-"}, stdin: "# none\n", want: "standard input: there is no task in it"},
		"an unknown key":    {o: runOptions{tasks: "-"}, stdin: "- command: [a]\n  comand: [b]\n", want: `standard input:2: [0]: there is no key "comand"; did you mean "command"?`},
		"no command in it":  {o: runOptions{tasks: "-"}, stdin: "- key: a\n", want: "standard input:1: [0]: there is no command"},
		"a job in the file": {o: runOptions{tasks: "-"}, stdin: "command: [a]\njob: b\n", want: "the job is named with --job"},
		"no map":            {o: runOptions{tasks: "-"}, stdin: "- echo\n", want: `standard input:1: [0]: this is the value "echo", and must be a map`},
		"malformed":         {o: runOptions{tasks: "-"}, stdin: "- {\n", want: "this is not YAML"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.o.makeJob(c.command, strings.NewReader(c.stdin))
			if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage {
				t.Errorf("got %v (exit code %d), want %q and %d", err, exitCode(err), c.want, exitUsage)
			}
		})
	}
}
