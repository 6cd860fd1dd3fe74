package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

// followed is what is seen of a job.
type followed struct {
	p        *program
	o        runOptions
	job      client.Job
	progress *progress
	failed   []*apiv1.Task // the first few
	err      error         // of writing output
}

// shownFailures is how many failed tasks are told of one by one.
const shownFailures = 10

// changed sees one task's change, on one goroutine.
func (f *followed) changed(t *apiv1.Task) {
	f.progress.see(t)
	if t.GetState() < apiv1.TaskState_TASK_STATE_SUCCEEDED {
		return
	}
	if t.GetState() != apiv1.TaskState_TASK_STATE_SUCCEEDED && len(f.failed) < shownFailures {
		f.failed = append(f.failed, t)
	}
	if err := f.write(t); err != nil && f.err == nil {
		f.err = failedf("writing the output of task %s: %v", t.GetKey(), err)
	}
}

func (f *followed) write(t *apiv1.Task) error {
	output := t.GetResult().GetOutput()
	if t.GetResult().GetTruncated() {
		fmt.Fprintf(f.p.err, "retinue: the output of task %s was cut at %s\n", clean(t.GetKey()), count(len(output), "byte"))
	}
	if f.o.outputDir != "" {
		return os.WriteFile(filepath.Join(f.o.outputDir, fileName(f.padded(t.GetKey()))), output, 0o644)
	}
	f.progress.clear()
	if _, err := f.p.out.Write(output); err != nil {
		return err
	}
	if !f.o.list() {
		_, err := f.p.err.Write(t.GetResult().GetErrors())
		return err
	}
	return nil
}

// failure tells which tasks failed and why. The exit code of a single command is the command's.
func (f *followed) failure() error {
	if !f.o.list() && len(f.failed) == 1 {
		t := f.failed[0]
		code := int(t.GetResult().GetExitCode())
		own := t.GetResult().GetOutcome() == apiv1.Outcome_OUTCOME_FAILED && t.GetState() != apiv1.TaskState_TASK_STATE_EXPIRED
		if code <= 0 || code > 255 || !own { // the code of a command that was killed is not its own, and an expired task did not end with its command
			code = exitFailed
		}
		return &exitError{code: code, err: errors.New(taskFailure(t))}
	}
	var b strings.Builder
	for _, t := range f.failed {
		b.WriteString(taskFailure(t))
		if words := lastWords(t); words != "" {
			b.WriteString(": " + words)
		}
		b.WriteString("\n")
	}
	all := f.progress.unsuccessful()
	if more := all - len(f.failed); more > 0 {
		fmt.Fprintf(&b, "%d more: retinue get tasks --app %s --state failed,cancelled,expired --job %s\n", more, f.o.app, f.job.Name)
	}
	fmt.Fprintf(&b, "%d of %s did not succeed", all, count(len(f.job.Tasks), "task"))
	return failedf("%s", b.String())
}

// taskFailure says of a task how it ended, and why as far as that is known: a command that did not end by itself has no exit code of its own.
func taskFailure(t *apiv1.Task) string {
	what := fmt.Sprintf("task %s %s", clean(t.GetKey()), stateName(t.GetState()))
	switch text := t.GetResult().GetText(); {
	case t.GetState() == apiv1.TaskState_TASK_STATE_EXPIRED && text != "": // which tells after how many attempts
	case t.GetAttempt() == 0:
		what += " before it was tried"
	default:
		what += " after " + count(t.GetAttempt(), "attempt")
	}
	switch text := clean(t.GetResult().GetText()); {
	case text != "":
		return what + ": " + text
	case t.GetResult().GetOutcome() == apiv1.Outcome_OUTCOME_FAILED:
		return fmt.Sprintf("%s: exit code %d", what, t.GetResult().GetExitCode())
	default:
		return what
	}
}

// lastWords is the last line of what a task wrote to its standard error, which most often says why it failed.
func lastWords(t *apiv1.Task) string {
	const most = 200
	lines := bytes.Split(bytes.TrimSpace(t.GetResult().GetErrors()), []byte("\n"))
	words := clean(string(bytes.TrimSpace(lines[len(lines)-1])))
	if runes := []rune(words); len(runes) > most {
		words = string(runes[:most]) + "…"
	}
	return words
}

// padded is a task's key with as many digits as the last of its job has, if the key was made up of the job's name and the task's number: so the
// files of a list are in its order.
func (f *followed) padded(key string) string {
	digits, ok := strings.CutPrefix(key, f.job.Name+"-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > len(f.job.Tasks) || f.job.Tasks[n-1].GetKey() != "" {
		return key
	}
	return fmt.Sprintf("%s-%0*d", f.job.Name, len(strconv.Itoa(len(f.job.Tasks))), n)
}

// fileName is a name for the output of a task. Keys are anything; what they may not do is lead out of the folder.
func fileName(key string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == os.PathSeparator || r == 0 {
			return '_'
		}
		return r
	}, key)
	if strings.Trim(name, ".") == "" {
		return "_" + name
	}
	return name
}
