package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. `retinue help exit-codes` explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitInterrupted = 130
)

// exitCodes says what each code means. All commands keep to it.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "done as asked"},
	{exitFailed, "what was tried did not work: a task failed or expired, a test failed, the daemon could not do it"},
	{exitUsage, "wrong usage, or something that is written wrongly: a flag, a file, a specification"},
	{exitUnreachable, "no daemon answers at the address, or not in time"},
	{exitNotFound, "there is no such application, executor, task or policy"},
	{exitRefused, "refused: the token is missing or does not allow it"},
	{exitInterrupted, "interrupted"},
}

// newExitCodes is a topic of help: a command that cannot be run.
func newExitCodes() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit codes of retinue:\n\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %3d   %s\n", c.code, c.meaning)
	}
	b.WriteString("\n\"retinue run\" of a single command ends with the command's own exit code if the command was run.")
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean (`retinue help exit-codes`)", Long: b.String()}
}
