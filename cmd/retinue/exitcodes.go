package main

import "github.com/spf13/cobra"

// newExitCodes is a topic of help: a command that cannot be run.
func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean (`retinue help exit-codes`)",
		Long: `The exit codes of retinue:

    0   done as asked
    1   what was tried did not work: a task failed, a test failed, the daemon could not do it
    2   wrong usage, or something that is written wrongly: a flag, a file, a specification
    3   no daemon answers at the address, or not in time
    4   there is no such application, executor, task or policy
    5   refused: the token is missing or does not allow it
  130   interrupted

"retinue run" of a single command ends with the command's own exit code if the command was run.`,
	}
}
