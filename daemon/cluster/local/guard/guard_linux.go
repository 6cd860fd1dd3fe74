package guard

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER

// adoptOrphans makes this process the parent of whatever loses its own below it.
func adoptOrphans() {
	syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) //nolint:errcheck // older than any kernel that runs this Go
}

// shield keeps signals that are meant for the host's process group or session from ending the guard before its work is
// done, and the lifeline and the fence from being inherited.
func shield() {
	// Not signal.Ignore: the container would inherit that, and be deaf to SIGTERM.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	for fd := range 8 {
		if fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// attributes puts the container into its own process group, and lets it die with the guard should that be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func waitAny(_ int, ws *syscall.WaitStatus) (int, error) { return syscall.Wait4(-1, ws, 0, nil) }

// killChildren kills every child of the guard: its container, and the orphans that it adopted.
func killChildren(int) {
	for _, pid := range children() {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has just ended by itself
	}
}

func children() []int {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return childrenByScan()
	}
	var pids []int
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil {
			return childrenByScan() // a kernel without CONFIG_PROC_CHILDREN
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// childrenByScan asks every process for its parent.
func childrenByScan() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == self {
			pids = append(pids, pid)
		}
	}
	return pids
}
