// Command retinue is the command line for operators, users and policy authors. `retinue help` lists what it can do.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

// version is set when a release is built.
var version string

func main() {
	if code, entered := local.Entered(); entered {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run is the program; it returns its exit code.
func run(ctx context.Context, args []string, io streams) int {
	root := newRoot(&program{streams: io}) //nolint:contextcheck // the commands get theirs from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(io.err, "retinue:", err)
	}
	return exitCode(err)
}
