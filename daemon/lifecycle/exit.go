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
	if code > exitSignal && code < 255 {
		return signal(code - exitSignal)
	}
	return "a code of the program's own"
}

func signal(n int32) string {
	switch n {
	case 1:
		return "SIGHUP: its terminal or session ended"
	case 2:
		return "SIGINT: interrupted"
	case 3:
		return "SIGQUIT: told to quit and show its stacks"
	case 4:
		return "SIGILL: it ran an illegal instruction; built for another processor?"
	case 6:
		return "SIGABRT: it gave up on an inner error"
	case 7:
		return "SIGBUS: a bad memory access, or a mapped file was cut"
	case 9:
		return "SIGKILL: killed from outside, often for want of memory"
	case 11:
		return "SIGSEGV: it crashed on a bad memory access"
	case 13:
		return "SIGPIPE: who read its output was gone"
	case 15:
		return "SIGTERM: told to end"
	}
	return fmt.Sprintf("signal %d", n)
}
