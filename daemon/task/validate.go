package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a Spec. Together they keep a launch well inside one message, and a command line inside what an operating system takes.
const (
	maxName     = 256       // bytes of a key, a job, a variable's name
	maxText     = 128 << 10 // bytes of one argument, value or path
	maxEntries  = 4096      // arguments, variables, files: of each
	maxInput    = 1 << 20   // bytes of input
	maxTotal    = 2 << 20   // bytes of all of it
	maxAttempts = 1000
	maxTime     = 365 * 24 * time.Hour
)

// Validate reports everything that is wrong with a spec, naming fields as the wire contract does. A valid one has a key, a command, names that can be
// names, and fits in a message.
func Validate(s *Spec) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		if len(errs) < 20 { // nobody reads more, and a spec may hold thousands of faults
			errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
		}
	}
	validateName(wrong, "key", s.Key)
	if s.Job != "" {
		validateName(wrong, "job", s.Job)
	}
	validateCommand(wrong, s.Command)
	validateEnv(wrong, s.Env)
	validateFiles(wrong, s.Files)
	if s.Directory != "" && !absolute(s.Directory) {
		wrong("directory", "%.200q is not absolute: begin it with a slash, or leave it out for a fresh folder", s.Directory)
	}
	validateText(wrong, "directory", s.Directory)
	if len(s.Input) > maxInput {
		wrong("input", "%d bytes are more than %d: put them in a file", len(s.Input), maxInput)
	}
	if size := s.size(); size > maxTotal {
		wrong("task", "%d bytes in all are more than %d: put the data in files", size, maxTotal)
	}
	if s.MaxAttempts > maxAttempts {
		wrong("max_attempts", "%d is more than %d", s.MaxAttempts, maxAttempts)
	}
	validateTime(wrong, "timeout", s.Timeout)
	validateTime(wrong, "kill_grace", s.KillGrace)
	validateTime(wrong, "deadline", s.Deadline)
	return errors.Join(errs...)
}

// complaint takes down what is wrong with a field.
type complaint func(field, format string, args ...any)

func validateName(wrong complaint, field, name string) {
	switch {
	case name == "":
		wrong(field, "is empty")
	case len(name) > maxName:
		wrong(field, "%d bytes are more than %d", len(name), maxName)
	case !utf8.ValidString(name):
		wrong(field, "%.200q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		wrong(field, "%.200q has a control character", name)
	}
}

// validateText holds for all that becomes a C string on the executor.
func validateText(wrong complaint, field, text string) {
	switch {
	case len(text) > maxText:
		wrong(field, "%d bytes are more than %d", len(text), maxText)
	case !utf8.ValidString(text):
		wrong(field, "%.200q is not UTF-8", text)
	case strings.IndexByte(text, 0) >= 0:
		wrong(field, "%.200q has a NUL byte", text)
	}
}

func validateCommand(wrong complaint, command []string) {
	if len(command) == 0 || command[0] == "" {
		wrong("command", "is empty: its first element is the program")
	}
	if len(command) > maxEntries {
		wrong("command", "%d elements are more than %d", len(command), maxEntries)
	}
	for i, arg := range command {
		validateText(wrong, fmt.Sprintf("command[%d]", i), arg)
	}
}

func validateEnv(wrong complaint, env []Env) {
	if len(env) > maxEntries {
		wrong("env", "%d variables are more than %d", len(env), maxEntries)
	}
	for i, v := range env {
		field := fmt.Sprintf("env[%d]", i)
		validateName(wrong, field+".name", v.Name)
		if strings.ContainsAny(v.Name, "= ") {
			wrong(field+".name", "%.200q has a blank or an equals sign", v.Name)
		}
		validateText(wrong, field+".value", v.Value)
	}
}

func validateFiles(wrong complaint, files []File) {
	if len(files) > maxEntries {
		wrong("files", "%d files are more than %d", len(files), maxEntries)
		return
	}
	names := make([]string, 0, len(files))
	for i, f := range files {
		field := fmt.Sprintf("files[%d]", i)
		validateText(wrong, field+".name", f.Name)
		validateText(wrong, field+".path", f.Path)
		switch {
		case !plain(f.Name):
			wrong(field+".name", "%.200q is not a plain relative path below the working directory", f.Name)
		case !absolute(f.Path):
			wrong(field+".path", "%.200q is not absolute", f.Path)
		}
		names = append(names, f.Name)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			wrong("files", "the name %.200q is given twice", names[i])
		}
	}
	for _, name := range names {
		for at := len(name); at >= 0; at = strings.LastIndexByte(name[:at], '/') {
			if _, taken := slices.BinarySearch(names, name[:at]); taken && at < len(name) {
				wrong("files", "%.200q cannot be below %.200q, which is a file itself", name, name[:at])
			}
		}
	}
}

// absolute and plain judge paths as the executor's system will, whatever system the daemon runs on.
func absolute(path string) bool { return strings.HasPrefix(path, "/") }

func plain(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

func validateTime(wrong complaint, field string, d time.Duration) {
	if d < 0 || d > maxTime {
		wrong(field, "%v is not between 0 and %v", d, maxTime)
	}
}

// size is how many bytes the spec's own data takes.
func (s *Spec) size() int {
	n := len(s.Key) + len(s.Job) + len(s.Directory) + len(s.Input)
	for _, arg := range s.Command {
		n += len(arg)
	}
	for _, v := range s.Env {
		n += len(v.Name) + len(v.Value)
	}
	for _, f := range s.Files {
		n += len(f.Name) + len(f.Path)
	}
	return n
}
