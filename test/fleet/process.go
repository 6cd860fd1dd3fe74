package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// gone waits a moment for what was told to end, and complains of what has not.
func (f *Fleet) gone() error {
	const moment = 5 * time.Second
	for deadline := time.Now().Add(moment); ; time.Sleep(20 * time.Millisecond) {
		left := survivors(f.cfg.Dir)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes were left behind: %s", strings.Join(left, "; "))
		}
	}
}

// survivors lists the processes, beside this one, in whose command or environment a folder stands.
func survivors(dir string) []string {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var left []string
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(name, "environ")) // gone meanwhile, or somebody else's
		cmdline, _ := os.ReadFile(filepath.Join(name, "cmdline"))
		if bytes.Contains(environ, []byte(dir)) || bytes.Contains(cmdline, []byte(dir)) {
			left = append(left, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return left
}

// Process returns the process of a pod's running container, as the local cluster tells it.
func Process(p *corev1.Pod) (pid int, running bool) {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			continue
		}
		if id, ok := strings.CutPrefix(c.ContainerID, "process://"); ok {
			if pid, err := strconv.Atoi(id); err == nil {
				return pid, true
			}
		}
	}
	return 0, false
}
