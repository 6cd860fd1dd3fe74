// Command build makes the WebAssembly modules of the shipped policies, which are committed so that the daemon
// builds with nothing but Go. Each folder of plugins with a manifest.json is one.
//
//	go run ./plugins/build          builds all and writes plugins/modules
//	go run ./plugins/build -check   builds all and compares with plugins/modules
//
// The same source gives the same bytes in any folder on any machine with the same Go version.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "plugins/build:", err)
		os.Exit(1)
	}
}

// run does what the arguments say and reports on out.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("plugins/build", flag.ContinueOnError)
	check := flags.Bool("check", false, "compare with what is committed instead of writing")
	root := flags.String("root", ".", "the folder of go.mod")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there are no arguments but flags, not %q", flags.Arg(0))
	}
	built, err := buildAll(ctx, *root)
	if err != nil {
		return err
	}
	if *check {
		return compare(*root, built, out)
	}
	return write(*root, built, out)
}
