// Command audit looks at source files: how long they are, whether they carry a licence, whether somebody left a key in them.
//
// It works on one folder at a time, so that many of it can share a tree, and it promises that the shares add up: the same records come
// out whatever the order and the grouping, and `audit reduce` over all of them writes byte for byte what `audit run` writes alone.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `audit looks at source files: lines, licence header, longest line, embedded keys.

  audit -root DIR FOLDER...   one record for each file that lies directly in the folders
  audit list -root DIR        the folders that hold files
  audit reduce [FILE...]      one report from many outputs (standard input without FILE)
  audit run -root DIR         all of it, one folder after the other

A record has seven columns with tabs between them: path, SHA-256, bytes, lines, longest line,
licensed or unlicensed, keys found (kind=count@first line, or a dash).
Exit status: 0 done, 1 something could not be read, 2 wrong usage.
`

// errUsage reports arguments that make no sense.
var errUsage = errors.New("see audit -h")

func main() {
	switch err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var out bytes.Buffer // so that nothing half is written when something goes wrong halfway
	if err := dispatch(args, stdin, &out, stderr); err != nil {
		return err
	}
	if _, err := out.WriteTo(stdout); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

func dispatch(args []string, stdin io.Reader, out *bytes.Buffer, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "list":
			return withRoot(args[1:], stderr, list(out))
		case "run":
			return withRoot(args[1:], stderr, sequential(out))
		case "reduce":
			return reduce(args[1:], stdin, out)
		}
	}
	return withRoot(args, stderr, folders(out))
}

// withRoot reads -root and opens the folder that it names. Nothing outside of it is read, whatever links the tree holds.
func withRoot(args []string, stderr io.Writer, do func(root *os.Root, rest []string) error) error {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dir := flags.String("root", "", "the `folder` that paths are relative to")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", err, errUsage)
	case *dir == "":
		return fmt.Errorf("-root is missing: name the folder that paths are relative to: %w", errUsage)
	}
	root, err := os.OpenRoot(*dir)
	if err != nil {
		return fmt.Errorf("opening the root: %w", err)
	}
	defer root.Close()
	return do(root, flags.Args())
}

func list(out *bytes.Buffer) func(*os.Root, []string) error {
	return func(root *os.Root, rest []string) error {
		if len(rest) > 0 {
			return fmt.Errorf("list takes no folders, got %q: %w", rest, errUsage)
		}
		names, err := Folders(root.FS())
		for _, name := range names {
			fmt.Fprintln(out, name)
		}
		return err
	}
}

func folders(out *bytes.Buffer) func(*os.Root, []string) error {
	return func(root *os.Root, names []string) error {
		if len(names) == 0 {
			return fmt.Errorf("no folder to audit: %w", errUsage)
		}
		return scanEach(root, names, func(records ...Record) { out.Write(appendRecords(nil, records)) })
	}
}

func sequential(out *bytes.Buffer) func(*os.Root, []string) error {
	return func(root *os.Root, rest []string) error {
		if len(rest) > 0 {
			return fmt.Errorf("run takes no folders, got %q: %w", rest, errUsage)
		}
		names, err := Folders(root.FS())
		if err != nil {
			return err
		}
		var report Report
		if err = scanEach(root, names, report.Add); err != nil {
			return err
		}
		return report.Print(out)
	}
}

// scanEach audits one folder after the other.
func scanEach(root *os.Root, names []string, take func(...Record)) error {
	scanner := NewScanner()
	for _, name := range names {
		records, err := scanner.Folder(root, name)
		if err != nil {
			return err
		}
		take(records...)
	}
	return nil
}

func reduce(names []string, stdin io.Reader, out *bytes.Buffer) error {
	var report Report
	if len(names) == 0 {
		if err := report.Read("standard input", stdin); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := readFile(&report, name); err != nil {
			return err
		}
	}
	return report.Print(out)
}

func readFile(report *Report, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading records: %w", err)
	}
	defer file.Close()
	return report.Read(name, file)
}
