package executor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/executor"
)

// What a program says and how it ends comes back.
func TestEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	s := func(spec *apiv1.TaskSpec) *apiv1.TaskSpec { return spec }
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) {
		c.Environ = append(os.Environ(), "RETINUE_TOKEN=hidden", "RETINUE_TOKEN_FILE=hidden", "A=base")
	})
	session := d.next()
	for i, test := range []struct {
		spec         *apiv1.TaskSpec
		outcome      apiv1.Outcome
		code         int32
		text, output string
		errors       string
	}{
		{sh("echo out; echo err >&2"), apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", "out\n", "err\n"},
		{sh("exit 7"), apiv1.Outcome_OUTCOME_FAILED, 7, "it ended with exit status 7", "", ""},
		{sh("kill -9 $$"), apiv1.Outcome_OUTCOME_FAILED, 137, "signal 9 (killed) ended it", "", ""},
		{s(&apiv1.TaskSpec{Command: []string{"cat"}, Input: []byte("in\x00put")}), apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", "in\x00put", ""},
		{s(&apiv1.TaskSpec{Command: []string{"true"}, Input: bytes.Repeat([]byte{1}, 1<<20)}), apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", "", ""},
		{sh("cat; pwd | grep -c task-6-1; ls -A; env | grep -c TOKEN"), apiv1.Outcome_OUTCOME_FAILED, 1, "it ended with exit status 1", "1\n0\n", ""},
		{
			s(&apiv1.TaskSpec{
				Command: []string{"sh", "-c", "echo $A $B $RETINUE_TASK $RETINUE_ATTEMPT $RETINUE_TASK_KEY"}, Key: "k",
				Env: []*apiv1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "RETINUE_ATTEMPT", Value: "lie"}},
			}),
			apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", "1 2 7 7.1 k\n", "",
		},
		{
			s(&apiv1.TaskSpec{Command: []string{"cat", "in/a"}, Files: []*apiv1.FileRef{{Name: "in/a", Path: file}}}),
			apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", "content", "",
		},
		{s(&apiv1.TaskSpec{Command: []string{"pwd"}, Directory: folder}), apiv1.Outcome_OUTCOME_SUCCEEDED, 0, "", folder + "\n", ""},
		{
			s(&apiv1.TaskSpec{Command: []string{"no-such-program-here"}}),
			apiv1.Outcome_OUTCOME_INVALID, 0, `no such program "no-such-program-here" in PATH of executor 3`, "", "",
		},
		{s(&apiv1.TaskSpec{Command: []string{"/no/such"}}), apiv1.Outcome_OUTCOME_INVALID, 0, `no such program "/no/such" on executor 3`, "", ""},
		{s(&apiv1.TaskSpec{Command: []string{file}}), apiv1.Outcome_OUTCOME_INVALID, 0, "program", "", ""},
		{s(&apiv1.TaskSpec{}), apiv1.Outcome_OUTCOME_INVALID, 0, "the task has no command", "", ""},
		{
			s(&apiv1.TaskSpec{Command: []string{"true"}, Files: []*apiv1.FileRef{{Name: "b", Path: "/no/such"}}}),
			apiv1.Outcome_OUTCOME_INVALID, 0, `file "b": "/no/such" cannot be read on executor 3`, "", "",
		},
		{
			s(&apiv1.TaskSpec{Command: []string{"true"}, Files: []*apiv1.FileRef{{Name: "../b", Path: file}}}),
			apiv1.Outcome_OUTCOME_INVALID, 0, `file "../b" would be outside`, "", "",
		},
		{s(&apiv1.TaskSpec{Command: []string{"true"}, Directory: file}), apiv1.Outcome_OUTCOME_INVALID, 0, "no such folder", "", ""},
		{
			s(&apiv1.TaskSpec{Command: []string{"sleep", "99"}, Timeout: durationpb.New(50 * time.Millisecond)}),
			apiv1.Outcome_OUTCOME_TIMEOUT, 143, "it ran longer than its timeout of 50ms", "", "",
		},
	} {
		id := uint64(i + 1)
		session.launch(id, test.spec)
		r := session.end(id)
		if r.GetOutcome() != test.outcome || r.GetExitCode() != test.code || !strings.HasPrefix(r.GetText(), test.text) ||
			string(r.GetOutput()) != test.output || string(r.GetErrors()) != test.errors || r.GetTruncated() || r.GetTook() == nil {
			t.Errorf("task %d %v:\ngot  %v\nwant %v code %d %q output %q errors %q", id, test.spec.GetCommand(), r, test.outcome, test.code, test.text, test.output, test.errors)
		}
		session.ack(id)
	}
}

// The folder of an attempt is gone when its end is reported, whatever is in it; what was linked into another folder is gone, too.
func TestFoldersAreRemoved(t *testing.T) {
	d := newDaemon(t)
	x := run(t, d, nil)
	session := d.next()
	session.launch(1, sh("mkdir -p a/b; touch a/b/c; chmod 0 a/b a"))
	session.end(1)
	folder := t.TempDir()
	session.launch(2, &apiv1.TaskSpec{Command: []string{"true"}, Directory: folder, Files: []*apiv1.FileRef{{Name: "link", Path: "/dev/null"}}})
	session.end(2)
	for _, place := range []string{x.cfg.WorkDir, folder} {
		if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", place, left, err)
		}
	}
}

// A program that writes without end is neither blocked nor remembered.
func TestOutputFlood(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	session := d.next()
	flood := 2 << 30
	if testing.Short() {
		flood = 256 << 20
	}
	session.launch(1, sh(fmt.Sprintf("head -c %d /dev/zero; head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2", flood)))
	r := session.end(1)
	if len(r.GetOutput()) != 1000 || !r.GetTruncated() || r.GetOutcome() != apiv1.Outcome_OUTCOME_SUCCEEDED {
		t.Errorf("%d bytes of output, truncated %v, %v %q", len(r.GetOutput()), r.GetTruncated(), r.GetOutcome(), r.GetText())
	}
	if e := string(r.GetErrors()); len(e) != 8<<10 || !strings.HasSuffix(e, "xend\n") {
		t.Errorf("%d bytes of errors, want the last 8 KiB", len(e))
	}
}

// kill tells the executor to end a task.
func (s *session) kill(id uint64) {
	s.t.Helper()
	s.send(&apiv1.AttachResponse{Kills: []*apiv1.Kill{{Task: taskRef(id), Reason: "a test"}}})
}

// A program is asked to end, and then made to.
func TestKill(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	session := d.next()
	for id, test := range []struct {
		script  string
		stopped bool
		code    int32
	}{
		{"trap 'exit 5' TERM; echo $$ > $READY; while :; do sleep 0.01; done", false, 5},
		{stubborn, false, 137},
		{"trap 'exit 6' TERM; echo $$ > $READY; while :; do sleep 0.01; done", true, 6}, // it is woken to hear
	} {
		text := session.ready(uint64(id), test.script)
		if test.stopped {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		session.kill(uint64(id))
		r := session.end(uint64(id))
		if r.GetOutcome() != apiv1.Outcome_OUTCOME_KILLED || r.GetText() != "ended: a test" || r.GetExitCode() != test.code {
			t.Errorf("%s: %v, want it killed with exit code %d", test.script, r, test.code)
		}
	}
}

// Whatever a program left behind is gone when its end is reported, also what left its session and its parent; and so it is when it is killed.
func TestEscapeesAreKilled(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	session := d.next()
	escapes := `
		pids=$1; : > $pids
		sh -c 'echo $$ >> '$pids'; exec sleep 1000' &
		setsid sh -c 'echo $$ >> '$pids'; exec sleep 1000' &
		setsid sh -c '(setsid sh -c "echo \$\$ >> '$pids'; exec sleep 1000" &) ; exit' &
		(setsid setsid sh -c 'trap "" TERM; echo $$ >> '$pids'; while :; do sleep 0.1; done' &)
		while [ $(wc -l < $pids) -lt 4 ]; do sleep 0.01; done
		echo ready > $2; `
	for id, last := range []string{"exit 0", "sleep 1000"} {
		pids, ready := filepath.Join(t.TempDir(), "pids"), filepath.Join(t.TempDir(), "ready")
		if err := syscall.Mkfifo(ready, 0o600); err != nil {
			t.Fatal(err)
		}
		session.launch(uint64(id+1), &apiv1.TaskSpec{Command: []string{"sh", "-c", escapes + last, "sh", pids, ready}})
		if _, err := os.ReadFile(ready); err != nil { // a fifo: it is there when all have started
			t.Fatal(err)
		}
		session.kill(uint64(id + 1))
		session.end(uint64(id + 1))
		list, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		escaped := strings.Fields(string(list))
		if len(escaped) != 4 {
			t.Fatalf("%d processes escaped, want 4", len(escaped))
		}
		for _, text := range escaped {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			if syscall.Kill(pid, 0) == nil {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				t.Errorf("%s: process %d is still there: %.60q, started with %d bytes of environment", last, pid, stat, len(environ))
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// An executor that is alone in its process also gets what left its session and wiped its environment, once no other attempt could own it.
func TestAloneSparesNothing(t *testing.T) {
	d := newDaemon(t)
	run(t, d, func(c *executor.Config) { c.Alone = true })
	session := d.next()
	pidFile := filepath.Join(t.TempDir(), "pid")
	session.ready(1, "setsid env -i /bin/sh -c 'echo $$ > "+pidFile+"; echo > '$READY'; exec /bin/sleep 1000' & sleep 1000")
	session.kill(1)
	session.end(1)
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is still there", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// One attempt's end does not touch what another left running below it.
func TestOthersAreSpared(t *testing.T) {
	d := newDaemon(t)
	run(t, d, nil)
	session := d.next()
	gate, answer := fifo(t), fifo(t)
	session.ready(1, "setsid sh -c 'setsid sh -c \"echo > $READY; cat "+gate+" > "+answer+"\" &'; cat "+answer)
	session.launch(2, sh("exit 0"))
	session.end(2)
	write(t, gate, "alive")
	if r := session.end(1); string(r.GetOutput()) != "alive" {
		t.Errorf("%v: the helper of the first task was killed with the second", r)
	}
}

// How long a program that does nothing takes, from its launch to the report of its end, two at a time.
func BenchmarkNothing(b *testing.B) {
	d := newDaemon(b)
	run(b, d, nil)
	session := d.next()
	next := uint64(0)
	launch := func() {
		next++
		session.launch(next, &apiv1.TaskSpec{Command: []string{"true"}})
	}
	launch()
	for done := uint64(1); b.Loop(); done++ {
		launch()
		session.end(done)
		session.ack(done)
	}
}
