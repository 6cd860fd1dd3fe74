package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// kindOfApp are the words for an application where a kind may be written.
var kindOfApp = []string{"apps", "application", "applications"}

// kindOfExecutor are those for an executor.
var kindOfExecutor = []string{"executors", "exec", "execs"}

// withKind lets a kind be written before what a command names, for those who are used to it: `stop app web` is `stop web`. The command loses
// nothing but names that are words for the kind, which NAMESPACE/NAME says as well.
func withKind(cmd *cobra.Command, kind string, aliases []string) *cobra.Command {
	rest := strings.TrimPrefix(cmd.Use[len(cmd.Name()):], " ["+kind+"]")
	same := &cobra.Command{Use: kind + rest, Aliases: aliases, Hidden: true, Short: cmd.Short, Args: cmd.Args, PreRunE: cmd.PreRunE, RunE: cmd.RunE}
	same.Flags().AddFlagSet(cmd.Flags())
	cmd.AddCommand(same)
	return cmd
}
