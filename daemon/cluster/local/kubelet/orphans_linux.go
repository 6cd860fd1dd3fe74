package kubelet

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
)

// killOrphans ends what a killed guard left behind: its container dies with it, but what the container started does
// not. Such processes are known by the variable that they have inherited; one that cleared its environment, and whose
// guard somebody killed, is the one thing that escapes.
func (k *Kubelet) killOrphans(pod types.UID, container string) {
	mark := []byte(OwnerVariable + "=" + string(pod) + "/" + container)
	for range 10 { // a process may fork between the look and the kill
		if !killMarked(mark) {
			return
		}
	}
}

func killMarked(mark []byte) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(variable, mark) {
				found = true
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has just ended by itself
			}
		}
	}
	return found
}
