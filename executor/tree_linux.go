package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of every process below it that loses its own, so that none gets out of reach by leaving its session.
// An executor that is alone in its process also shuts its memory, and the environment in which its token came, to the tasks that run as the same
// user (root sees everything).
func (t *tree) adopt() error {
	if t.alone {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// ask tells a program and its group to end. A stopped one is woken, so that it can hear.
func (t *tree) ask(cmd *exec.Cmd) { t.signal(cmd, unix.SIGTERM, unix.SIGCONT) }

// kill ends a program and its group.
func (t *tree) kill(cmd *exec.Cmd) { t.signal(cmd, unix.SIGKILL) }

func (t *tree) signal(cmd *exec.Cmd, signals ...unix.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mains[cmd.Process.Pid] { // it was waited for: the number may be another's now
		return
	}
	for _, s := range signals {
		_ = unix.Kill(-cmd.Process.Pid, s)
	}
}

// wait waits until a program has ended, then ends all that it left behind, and only then lets go of the program's number: as long as that is
// held, its group's and its session's number are no other's.
func (t *tree) wait(cmd *exec.Cmd, r ref) (*os.ProcessState, error) {
	pid := cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	t.sweep(pid, r)
	t.mu.Lock()
	defer t.mu.Unlock()
	err := cmd.Wait() // it has ended: this does not block
	delete(t.mains, pid)
	return cmd.ProcessState, err
}

// Bounds of a sweep.
const (
	sweepTime  = 5 * time.Second
	unsureTime = 500 * time.Millisecond
	firstNap   = 200 * time.Microsecond
	longestNap = 20 * time.Millisecond
)

// sweep kills what an attempt's program left behind, and waits until it is gone. Killing a process hands its children to us, so it takes a
// round for each generation; it is over when a round finds nothing.
func (t *tree) sweep(main int, r ref) {
	begin := time.Now()
	last := begin // time at which a round found something
	for nap := firstNap; ; nap = min(2*nap, longestNap) {
		found, unsure := t.round(main, r)
		now := time.Now()
		if found > 0 {
			last = now
		}
		if now.Sub(begin) > sweepTime || found == 0 && (unsure == 0 || now.Sub(last) > unsureTime) {
			return
		}
		time.Sleep(nap) // a killed process takes a moment to go, and nothing tells when all are
	}
}

// round kills the strays of an attempt once and lets go of those that have ended. It counts both, and those whose attempt cannot be told now. It
// holds the lock, so that nobody else lets go of a process between the look and the kill.
func (t *tree) round(main int, r ref) (found, unsure int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.strays() {
		if reaped(p.pid) {
			found++
			continue
		}
		ours, known := marked(p.pid, r)
		if ours || p.session == main || p.group == main || t.alone && len(t.mains) == 1 {
			_ = unix.Kill(p.pid, unix.SIGKILL)
			found++
		} else if !known {
			unsure++
		}
	}
	return found, unsure
}

// reap lets go of strays that ended by themselves.
func (t *tree) reap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.strays() {
		reaped(p.pid)
	}
}

func reaped(pid int) bool {
	got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return got == pid || err == unix.ECHILD
}

// strays lists our children that we did not start. Only the numbers of our own children are sure not to be taken over by others.
func (t *tree) strays() []process {
	var strays []process
	for _, pid := range children(os.Getpid()) {
		if t.mains[pid] {
			continue
		}
		if p, ok := look(pid); ok {
			strays = append(strays, p)
		}
	}
	return strays
}

// process is what the kernel says of one.
type process struct{ pid, group, session int }

func look(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ") // the name before may hold anything
	fields := strings.Fields(rest)                                                  // state, parent, group, session, ...
	if len(fields) < 4 {
		return process{}, false
	}
	group, _ := strconv.Atoi(fields[2])
	session, _ := strconv.Atoi(fields[3])
	return process{pid: pid, group: group, session: session}, true
}

// marked reports whether a process carries an attempt's mark in the environment it was started with. That is not known of one that is just
// becoming another program, or that has no environment at all.
func marked(pid int, r ref) (ours, known bool) {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false, !errors.Is(err, unix.ESRCH)
	}
	mark := append([]byte(r.mark()), 0)
	return bytes.HasPrefix(environ, mark) || bytes.Contains(environ, append([]byte{0}, mark...)), len(environ) > 0
}

// children lists the children of a process. The kernel keeps them by thread.
func children(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, thread := range threads {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// memory adds up the resident memory of this process and all below it, in bytes.
func (t *tree) memory() uint64 {
	const most = 4096
	var pages uint64
	todo := []int{os.Getpid()}
	for seen := 0; len(todo) > 0 && seen < most; seen++ {
		pid := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], children(pid)...)
		if statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
			if fields := strings.Fields(string(statm)); len(fields) > 1 {
				n, _ := strconv.ParseUint(fields[1], 10, 64)
				pages += n
			}
		}
	}
	return pages * uint64(os.Getpagesize())
}
