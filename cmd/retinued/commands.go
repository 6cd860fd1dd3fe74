package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/spf13/pflag"

	"github.com/retinue-sched/retinue/daemon"
	"github.com/retinue-sched/retinue/daemon/driver"
)

// runConfig prints or checks the configuration.
func runConfig(args []string, out io.Writer) error {
	if len(args) == 0 || (args[0] != "print" && args[0] != "validate") {
		return usageError{errors.New("config: write `retinued config print` or `retinued config validate`")}
	}
	src, rest, err := parse("retinued config", args[1:], out)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{fmt.Errorf("config: %q is one word too many; files are named by --config", rest[0])}
	}
	cfg, err := src.load()
	if err != nil {
		return usageError{err}
	}
	if args[0] == "print" {
		return printConfig(cfg, out)
	}
	if err = cfg.Validate(); err != nil {
		return usageError{fmt.Errorf("checking the configuration:\n%w", err)}
	}
	_, err = fmt.Fprintln(out, "the configuration is valid")
	return err
}

func printConfig(cfg daemon.Config, out io.Writer) error {
	text, err := yaml.Parser().Marshal(tree(reflect.ValueOf(cfg)))
	if err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// runToken makes a token.
func runToken(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("retinued token", pflag.ContinueOnError)
	flags.SetOutput(out)
	role := flags.String("role", "view", "what the token allows: view, submit or admin")
	namespace := flags.String("namespace", "*", "the only namespace that it shows, or * for all")
	name := flags.String("name", "", "whose it is, for people and logs; no blanks")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if *name == "" {
		return usageError{errors.New("token: say whose it is with --name")}
	}
	token, line, err := driver.NewToken(*role, *namespace, *name)
	if err != nil {
		return usageError{fmt.Errorf("token: %w", err)}
	}
	_, err = fmt.Fprintf(out, "# give this token to %s; it is not kept anywhere\n%s\n# add this line to the token file (listen.tokenFile)\n%s\n", *name, token, line)
	return err
}

// runVersion says what this program is.
func runVersion(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("retinued version", pflag.ContinueOnError)
	flags.SetOutput(out)
	format := flags.StringP("output", "o", "text", "text or json")
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	switch *format {
	case "json":
		return json.NewEncoder(out).Encode(map[string]string{
			"program": "retinued", "version": programVersion(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	case "text":
		_, err := fmt.Fprintln(out, "retinued", programVersion())
		return err
	default:
		return usageError{fmt.Errorf("version: %q is not a format: write text or json", *format)}
	}
}
