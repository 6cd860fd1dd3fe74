// Command bench measures what Retinue costs and holds the numbers beside their floors.
//
// It promises that every number comes from a run of the code that ships, on this machine and now; that what is compared is measured in turns, so
// that a busy machine slows both; and that it fails only when something cannot be measured: a number that is short is printed, not hidden.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

func main() {
	if code, entered := local.Entered(); entered { // this program is also the local cluster's
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is something that is measured.
type bench struct {
	name string
	run  func(context.Context, settings) ([]row, error)
}

// benches are all, in the order in which they run: what is disturbed by the others' garbage comes first.
var benches = []bench{
	{"core", core},
	{"policy", policies},
	{"idle", idle},
	{"tasks", tasks},
}

// settings is what can be changed from the command line.
type settings struct {
	which *regexp.Regexp // names of the benches that run
	bin   string         // folder of the programs; empty: they are built
}

// run runs the benches and prints each one's rows when it is over.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && args[0] == lightArg {
		return beLight(ctx, os.Getenv)
	}
	set, err := parse(args, out)
	if err != nil {
		return err
	}
	printHead(out)
	for _, b := range benches {
		if !set.which.MatchString(b.name) {
			continue
		}
		rows, err := b.run(ctx, set)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", b.name, err)
		}
		printRows(out, b.name, rows)
	}
	return nil
}

func parse(args []string, out io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	which := flags.String("run", "", "run the benches whose names (core, policy, idle, tasks) match this `regexp`")
	flags.StringVar(&set.bin, "bin", "", "`folder` of retinued and retinue-executor; they are built when empty")
	err := flags.Parse(args)
	if err != nil {
		return set, err
	}
	if set.which, err = regexp.Compile(*which); err != nil {
		return set, fmt.Errorf("reading -run: %w", err)
	}
	return set, nil
}
