package lifecycle

import "fmt"

// Exit codes that a shell, or who starts a container, gives in the program's place.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// Exit says in a few words what an exit code usually means.
func Exit(code int32) string {
	switch code {
	case 0:
		return "no error"
	case 1:
		return "an error; the log says which"
	case 2:
		return "wrong usage; check the command's arguments"
	case exitNotExecutable:
		return "the command cannot be executed: permission, or built for another machine"
	case exitNotFound:
		return "the command was not found"
	case 255:
		return "an error without a code of its own; the log may say which"
	}
	if s, ok := signals[code-exitSignal]; ok {
		return s
	}
	if code > exitSignal && code < 255 {
		return fmt.Sprintf("signal %d", code-exitSignal)
	}
	return "a code of the program's own"
}

var signals = map[int32]string{
	1:  "SIGHUP: its terminal or session ended",
	2:  "SIGINT: interrupted",
	3:  "SIGQUIT: told to quit and show its stacks",
	4:  "SIGILL: it ran an illegal instruction; built for another processor?",
	6:  "SIGABRT: it gave up on an inner error",
	7:  "SIGBUS: a bad memory access, or a mapped file was cut",
	9:  "SIGKILL: killed from outside, often for want of memory",
	11: "SIGSEGV: it crashed on a bad memory access",
	13: "SIGPIPE: who read its output was gone",
	15: "SIGTERM: told to end",
}
