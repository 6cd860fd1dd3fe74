package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// following is a job of which the tasks with these keys are followed; what it writes comes out of the two buffers.
func following(o runOptions, keys ...string) (f *followed, out, complaints *bytes.Buffer) {
	out, complaints = &bytes.Buffer{}, &bytes.Buffer{}
	f = &followed{p: &program{streams: streams{out: out, err: complaints}}, o: o, progress: newProgress(complaints, len(keys), true)}
	for _, key := range keys {
		f.job.Tasks = append(f.job.Tasks, &apiv1.TaskSpec{Key: key})
	}
	return f, out, complaints
}

func ended(key string, state apiv1.TaskState, result *apiv1.Report) *apiv1.Task {
	return &apiv1.Task{Key: key, State: state, Attempt: 2, Result: result}
}

// A single command's output and complaints come out as they are, and its exit code is the program's.
func TestSingleCommand(t *testing.T) {
	f, out, complaints := following(runOptions{}, "a")
	f.changed(ended("a", apiv1.TaskState_TASK_STATE_RUNNING, nil))
	f.changed(ended("a", apiv1.TaskState_TASK_STATE_FAILED, &apiv1.Report{
		Outcome: apiv1.Outcome_OUTCOME_FAILED, ExitCode: 42, Text: "it ended with exit status 42", Output: []byte("half\x00done"), Errors: []byte("why\n"),
	}))
	if out.String() != "half\x00done" || complaints.String() != "why\n" {
		t.Errorf("wrote %q and %q, want what the command wrote", out, complaints)
	}
	err := f.failure()
	if exitCode(err) != 42 || err.Error() != "task a failed after 2 attempts: it ended with exit status 42" {
		t.Errorf("got %v with code %d, want the command's own", err, exitCode(err))
	}
}

// A command that did not end by itself has no exit code of its own, and what others said of it does not reach the terminal as it is.
func TestSingleCommandThatWasEnded(t *testing.T) {
	for want, task := range map[string]*apiv1.Task{
		"task a cancelled after 2 attempts: somebody asked": ended("a", apiv1.TaskState_TASK_STATE_CANCELLED, &apiv1.Report{
			Outcome: apiv1.Outcome_OUTCOME_KILLED, ExitCode: 143, Text: "somebody\tas\x1bked",
		}),
		"task a failed after 2 attempts: too long": ended("a", apiv1.TaskState_TASK_STATE_FAILED, &apiv1.Report{
			Outcome: apiv1.Outcome_OUTCOME_TIMEOUT, ExitCode: 143, Text: "too long",
		}),
		"task a expired after 2 attempts": ended("a", apiv1.TaskState_TASK_STATE_EXPIRED, &apiv1.Report{}),
		"task a expired: its deadline of 30s passed after 2 attempts: it ended with exit status 42": ended("a", apiv1.TaskState_TASK_STATE_EXPIRED, &apiv1.Report{
			Outcome: apiv1.Outcome_OUTCOME_FAILED, ExitCode: 42, Text: "its deadline of 30s passed after 2 attempts: it ended with exit status 42",
		}),
		"task a failed after 2 attempts: exit code 0": ended("a", apiv1.TaskState_TASK_STATE_FAILED, &apiv1.Report{Outcome: apiv1.Outcome_OUTCOME_FAILED}),
		"task a cancelled before it was tried":        {Key: "a", State: apiv1.TaskState_TASK_STATE_CANCELLED, Result: &apiv1.Report{}},
		"task a cancelled after 1 attempt":            {Key: "a", State: apiv1.TaskState_TASK_STATE_CANCELLED, Attempt: 1},
	} {
		f, _, _ := following(runOptions{}, "a")
		f.changed(task)
		if err := f.failure(); exitCode(err) != exitFailed || err.Error() != want {
			t.Errorf("got %q with code %d, want %q and %d", err, exitCode(err), want, exitFailed)
		}
	}
}

// A list ends with 1 if a task failed, even if it is a list of one; the first failures are told, each with its last words.
func TestListOfTasks(t *testing.T) {
	f, out, complaints := following(runOptions{each: "-"}, "a")
	f.changed(ended("a", apiv1.TaskState_TASK_STATE_FAILED, &apiv1.Report{
		Outcome: apiv1.Outcome_OUTCOME_FAILED, ExitCode: 42, Text: "it ended with exit status 42", Output: []byte("half"), Errors: []byte("at first\nin \x1b[31mthe end\n\n"),
	}))
	err := f.failure()
	want := "task a failed after 2 attempts: it ended with exit status 42: in [31mthe end\n1 of 1 task did not succeed"
	if exitCode(err) != exitFailed || err.Error() != want {
		t.Errorf("got %q with code %d, want %q and %d", err, exitCode(err), want, exitFailed)
	}
	if out.String() != "half" || complaints.Len() > 0 {
		t.Errorf("wrote %q and %q, want the output only", out, complaints)
	}
}

// Of many failures only the first few are told one by one, and all are counted.
func TestManyFailures(t *testing.T) {
	var keys []string
	for i := range 3 * shownFailures {
		keys = append(keys, strings.Repeat("x", i+1))
	}
	f, _, _ := following(runOptions{each: "-", app: "hello"}, keys...)
	f.job.Name = "many"
	for _, key := range keys {
		f.changed(ended(key, apiv1.TaskState_TASK_STATE_FAILED, &apiv1.Report{ExitCode: 1}))
	}
	lines := strings.Split(f.failure().Error(), "\n")
	want := []string{"20 more: retinue get tasks --app hello --state failed,cancelled,expired --job many", "30 of 30 tasks did not succeed"}
	if diff := cmp.Diff(want, lines[shownFailures:]); diff != "" {
		t.Errorf("after %d failures (-want +got):\n%s", shownFailures, diff)
	}
}

// The files of a list are in its order by name. A key that was given is kept as it is.
func TestOutputNamesAreInOrder(t *testing.T) {
	keys := make([]string, 100)
	keys[8] = "j-9"
	f, _, _ := following(runOptions{each: "-"}, keys...)
	f.job.Name = "j"
	for key, want := range map[string]string{
		"j-1": "j-001", "j-42": "j-042", "j-100": "j-100", "j-9": "j-9", "j-101": "j-101", "j-0": "j-0", "j--1": "j--1", "other-1": "other-1", "j-x": "j-x",
	} {
		if got := f.padded(key); got != want {
			t.Errorf("the output of %s goes to %s, want %s", key, got, want)
		}
	}
}

// Output goes into files that stay in the folder, whatever the keys are, and a cut is told.
func TestOutputFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"plain": "plain", "../../up": ".._.._up", "..": "_..", ".": "_.", "a/b": "a_b"}
	f, out, complaints := following(runOptions{each: "-", outputDir: dir})
	for key := range files {
		f.changed(ended(key, apiv1.TaskState_TASK_STATE_SUCCEEDED, &apiv1.Report{Output: []byte(key), Truncated: key == "a/b"}))
	}
	if f.err != nil || out.Len() > 0 {
		t.Errorf("got %v, and %q on the standard output, want neither", f.err, out)
	}
	for key, name := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != key {
			t.Errorf("%s holds %q (%v), want the output of %s", name, got, err, key)
		}
	}
	if want := "retinue: the output of task a/b was cut at 3 bytes\n"; complaints.String() != want {
		t.Errorf("complained %q, want %q", complaints, want)
	}
	f.o.outputDir = filepath.Join(dir, "gone")
	f.changed(ended("late", apiv1.TaskState_TASK_STATE_SUCCEEDED, nil))
	if f.err == nil || !strings.Contains(f.err.Error(), "writing the output of task late") {
		t.Errorf("got %v, want that the folder is gone", f.err)
	}
}
