// Command demo puts a fleet to work on this machine and checks what comes out: it audits the Go toolchain's own sources, one task per package
// folder, on executors that grow with the backlog, while the policy is swapped and an executor is killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/retinue-sched/retinue/test/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Println("demo: FAILED:", err)
		os.Exit(1)
	}
}

// patience is how long the demo may take on a machine that is very busy.
const patience = 10 * time.Minute

// settings is what can be changed from the command line.
type settings struct {
	bin   string // folder of the programs
	root  string // what is audited; empty: the toolchain's sources
	keep  bool   // leave the folder with logs and outputs behind
	limit int    // audit at most this many folders; 0: all
}

// run is the demo. Whatever happens, nothing that it started is left when it returns.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	set, err := parse(args, out)
	if err != nil {
		return err
	}
	began := time.Now()
	dir, err := os.MkdirTemp("", "retinue-demo-")
	if err != nil {
		return fmt.Errorf("making a folder to work in: %w", err)
	}
	d := &demo{dir: dir, settings: set, screen: newScreen(out), out: out}
	defer func() {
		if err != nil && d.fleet != nil {
			d.fleet.ShowLogs(context.WithoutCancel(ctx), out)
		}
		err = errors.Join(err, d.stop()) //nolint:contextcheck // what was started must end although the demo was cancelled
		if !set.keep {
			_ = os.RemoveAll(dir)
		}
	}()
	if d.fleet, err = fleet.Start(ctx, fleet.Config{Dir: dir, Bin: set.bin}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the demo took too long"))
	defer cancel()
	if err = d.work(ctx); err != nil {
		return err
	}
	if err = d.stop(); err != nil { //nolint:contextcheck // as above
		return err
	}
	d.summary(time.Since(began))
	return nil
}

// stop ends the fleet, if there is one, and complains of what is left of it.
func (d *demo) stop() error {
	if d.fleet == nil {
		return nil
	}
	return d.fleet.Stop()
}

func parse(args []string, out io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&set.bin, "bin", "bin", "`folder` of the programs that `make build` made")
	flags.StringVar(&set.root, "root", "", "`folder` whose sources are audited; the Go toolchain's when empty")
	flags.BoolVar(&set.keep, "keep", false, "leave the folder with logs and outputs behind")
	flags.IntVar(&set.limit, "limit", 0, "audit at most this many folders; all when 0")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	bin, err := filepath.Abs(set.bin)
	if err != nil {
		return set, err
	}
	set.bin = bin
	for _, program := range []string{"retinued", "retinue-executor", "retinue", "audit"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return set, fmt.Errorf("finding the programs: %w: run `make build` first", err)
		}
	}
	return set, nil
}
