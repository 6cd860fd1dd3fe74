package guard_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/cluster/local/guard"
)

// hostVariable makes the test program a host that starts one container and then waits to be killed.
const hostVariable = "GUARD_TEST_HOST"

// The test program is started again as a guard, and as a host that is to be killed.
func TestMain(m *testing.M) {
	if os.Args[0] == guard.Argv0 {
		os.Exit(guard.Main())
	}
	if script := os.Getenv(hostVariable); script != "" {
		os.Exit(host(script))
	}
	os.Exit(m.Run())
}

func host(script string) int {
	if _, err := guard.Start(os.Args[0], shell(os.Getenv("GUARD_TEST_DIR"), script), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("started")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until it is killed
	return 0
}

func shell(dir, script string) guard.Spec {
	return guard.Spec{
		Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir,
		Log: filepath.Join(dir, "log"), LogBytes: 1 << 20,
	}
}

func start(t *testing.T, spec guard.Spec) *guard.Process {
	t.Helper()
	p, err := guard.Start(os.Args[0], spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fifo is a named pipe: who reads it blocks until somebody writes, and sees the end when the last writer is gone. Tests
// know by it that a process runs and that none is left, without looking again and again.
func fifo(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// follow tells when the first line is written to the pipe, and when no process has it open any more.
func follow(path string) (up, gone <-chan string) {
	first, last := make(chan string, 1), make(chan string, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			first <- err.Error()
			return
		}
		defer f.Close()
		r := bufio.NewReader(f)
		line, err := r.ReadString('\n')
		first <- line + errText(err)
		rest, err := io.ReadAll(r)
		last <- string(rest) + errText(err)
	}()
	return first, last
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func within(t *testing.T, what string, out <-chan string) string {
	t.Helper()
	select {
	case text := <-out:
		return text
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: still waiting after 20 s", what)
		return ""
	}
}

func TestExit(t *testing.T) {
	for script, want := range map[string]guard.Exit{
		"exit 0":             {Code: 0},
		"exit 7":             {Code: 7},
		"kill -9 $$":         {Code: 137, Signal: syscall.SIGKILL},
		"kill -TERM $$":      {Code: 143, Signal: syscall.SIGTERM},
		"(sleep 60 &); exit": {Code: 0}, // an orphan that holds the output
	} {
		p := start(t, shell(t.TempDir(), script))
		got := p.Wait()
		if got.Code != want.Code || got.Signal != want.Signal || got.Lost || got.At.Before(p.Started()) {
			t.Errorf("%s: got %+v, want %+v", script, got, want)
		}
	}
}

// A process that cannot be started says why, in a container runtime's words.
func TestStartError(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := func(dir string, argv ...string) guard.Spec {
		s := shell(dir, "")
		s.Argv, s.Log = argv, filepath.Join(t.TempDir(), "log")
		return s
	}
	for want, s := range map[string]guard.Spec{
		`exec: "nosuch": executable file not found in $PATH`:                            spec(dir, "nosuch"),
		`exec: "/nosuch/x": stat /nosuch/x: no such file or directory`:                  spec(dir, "/nosuch/x"),
		`exec: "./plain": permission denied`:                                            spec(dir, "./plain"),
		`no command specified`:                                                          spec(dir),
		`chdir to cwd ("/nosuch") set in config.json failed: no such file or directory`: spec("/nosuch", "true"),
	} {
		_, err := guard.Start(os.Args[0], s, nil)
		var refused *guard.StartError
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// SIGTERM reaches the container's own process, which may take its time.
func TestTerminate(t *testing.T) {
	dir := t.TempDir()
	pipe := fifo(t, dir)
	up, _ := follow(pipe)
	p := start(t, shell(dir, `trap 'echo bye; exit 5' TERM; echo up > `+pipe+`; while :; do sleep 0.05; done`))
	within(t, "start", up)
	p.Terminate()
	if got := p.Wait(); got.Code != 5 {
		t.Errorf("got %+v, want code 5", got)
	}
	if log := readLog(t, filepath.Join(dir, "log")); !strings.Contains(log, " stdout F bye\n") {
		t.Errorf("log %q has no last word", log)
	}
}

// escapees is a script whose descendants leave the process group and the session, and ignore signals. Each holds the pipe
// open until it is gone.
func escapees(pipe string) string {
	return `exec 9>` + pipe + `; echo up >&9
setsid sh -c 'trap "" TERM HUP INT; (setsid sleep 600 &); sleep 600' &
(sh -c 'sleep 600' &)
trap "" TERM; sleep 600 & wait; sleep 600`
}

// Kill leaves nobody behind, whatever has left its group, its session or its parent.
func TestKillLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := fifo(t, dir)
	up, gone := follow(pipe)
	p := start(t, shell(dir, escapees(pipe)))
	within(t, "start", up)
	p.Kill()
	if got := p.Wait(); got.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, want SIGKILL", got)
	}
	within(t, "end of all descendants", gone)
}

// When the container's own process ends, what it has started ends too.
func TestEndOfTheFirstEndsAll(t *testing.T) {
	dir := t.TempDir()
	pipe := fifo(t, dir)
	up, gone := follow(pipe)
	p := start(t, shell(dir, `exec 9>`+pipe+`; echo up >&9; setsid sh -c '(setsid sleep 600 &); sleep 600' & exit 4`))
	if got := p.Wait(); got.Code != 4 {
		t.Errorf("got %+v, want code 4", got)
	}
	within(t, "start", up)
	within(t, "end of all descendants", gone)
}

// A host that is killed takes everything with it.
func TestKilledHostLeavesNobody(t *testing.T) {
	dir := t.TempDir()
	pipe := fifo(t, dir)
	up, gone := follow(pipe)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostVariable+"="+escapees(pipe), "GUARD_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("the host said %q, %v", line, err)
	}
	within(t, "start", up)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	within(t, "end of all descendants", gone)
}

// A guard that is killed is reported as lost, and its container dies with it.
func TestKilledGuard(t *testing.T) {
	dir := t.TempDir()
	pipe := fifo(t, dir)
	up, gone := follow(pipe)
	p := start(t, shell(dir, `exec 9>`+pipe+`; echo up >&9; exec sleep 600`))
	within(t, "start", up)
	if err := syscall.Kill(p.Guard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.Wait(); !got.Lost || got.Code != 137 {
		t.Errorf("got %+v, want a lost one", got)
	}
	within(t, "end of the container", gone)
}

func readLog(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whatever a container writes, its log stays below twice its size, keeps the newest lines, and has each with its time
// and stream.
func TestLogIsBounded(t *testing.T) {
	spec := shell(t.TempDir(), `i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; printf unfinished`)
	spec.LogBytes = 20_000
	start(t, spec).Wait()
	newer, older := readLog(t, spec.Log), readLog(t, spec.Log+".1")
	if n := len(newer) + len(older); n > 2*20_000+200 {
		t.Errorf("%d bytes of log, want at most twice 20,000", n)
	}
	all := strings.Split(strings.TrimSuffix(older+newer, "\n"), "\n")
	previous := -1
	for _, line := range all {
		at, rest, _ := strings.Cut(line, " ")
		if _, err := time.Parse(guard.LogTime, at); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		number, ok := strings.CutPrefix(rest, "stdout F line ")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || previous >= 0 && n != previous+1 {
			t.Fatalf("line %q after number %d", line, previous)
		}
		previous = n
	}
	if previous != 2999 {
		t.Errorf("the newest line is %d, want 2999", previous)
	}
	if !strings.Contains(newer, " stdout P unfinished\n") {
		t.Errorf("the unfinished line is missing: the log ends with %q", all[len(all)-1])
	}
}

// Both streams are kept, each line with its stream.
func TestStreams(t *testing.T) {
	spec := shell(t.TempDir(), `echo fine; echo oops >&2`)
	start(t, spec).Wait()
	log := readLog(t, spec.Log)
	for _, line := range []string{" stdout F fine\n", " stderr F oops\n"} { // in either order
		if !strings.Contains(log, line) {
			t.Errorf("%q is missing in %q", line, log)
		}
	}
}

// A line longer than 16 KiB is cut into parts that together are the line.
func TestLongLine(t *testing.T) {
	spec := shell(t.TempDir(), `head -c 40000 /dev/zero | tr '\0' x; echo`)
	start(t, spec).Wait()
	total, parts := 0, 0
	for line := range strings.Lines(readLog(t, spec.Log)) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		total += len(words[3])
		if words[2] == "P" {
			parts++
		}
	}
	if total != 40_000 || parts != 2 {
		t.Errorf("%d characters and %d parts, want 40,000 and 2", total, parts)
	}
}
