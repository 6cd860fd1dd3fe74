package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/retinue-sched/retinue/daemon"
)

// envPrefix begins the environment variables that set keys; two underscores nest: RETINUE_LISTEN__SOCKET is listen.socket.
const envPrefix = "RETINUE_"

// Variables that belong to clients, executors and the machinery around them, which may share an environment with the daemon. What is no
// variable of theirs and no key is refused, so that a slip of the pen is noticed.
var (
	othersVariables = []string{
		"RETINUE_DAEMON",
		"RETINUE_ADDRESS", "RETINUE_APPLICATION", "RETINUE_NAMESPACE", "RETINUE_SLOTS", "RETINUE_LEASE", "RETINUE_CA_FILE", "RETINUE_WORK_DIR",
		"RETINUE_TOKEN", "RETINUE_TOKEN_FILE", "RETINUE_LEAVE_GRACE", "RETINUE_KILL_GRACE", "RETINUE_LOG_FORMAT", "RETINUE_LOG_LEVEL",
		"RETINUE_TASK", "RETINUE_TASK_KEY", "RETINUE_ATTEMPT", "RETINUE_TERMINATION_LOG",
	}
	// Each ends in the middle of a word of a key, so that no key can begin with it.
	othersPrefixes = []string{"RETINUE_CLIENT_", "RETINUE_EXECUTOR_", "RETINUE_POD_", "RETINUE_LOCAL_", "RETINUE_MOUNT_"}
)

// ofOthers reports whether a variable is another program's.
func ofOthers(name string) bool {
	return slices.Contains(othersVariables, name) || slices.ContainsFunc(othersPrefixes, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && !strings.HasPrefix(rest, "_") // two underscores are how keys nest
	})
}

// sources is where a configuration comes from. What comes later wins: defaults, files in the order given, environment, flags.
type sources struct {
	files []string
	env   []string // as os.Environ returns it
	flags *pflag.FlagSet
}

// load puts a configuration together. The error names every key that is not known or does not have the right form, and where it was written.
func (s sources) load() (daemon.Config, error) {
	k := koanf.New(".")
	var errs []error
	for _, name := range s.files {
		errs = append(errs, s.file(k, name))
	}
	errs = append(errs, s.environment(k), s.flag(k))
	if err := errors.Join(errs...); err != nil {
		return daemon.Config{}, err
	}
	return decode(k)
}

// decode lays the keys over the defaults.
func decode(k *koanf.Koanf) (daemon.Config, error) {
	cfg := defaults()
	err := k.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: &cfg, ErrorUnused: true, // merge has given every value its type
	}})
	if err != nil {
		return daemon.Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return cfg, nil
}

// defaults is the configuration of a daemon that is told nothing.
func defaults() daemon.Config {
	cfg := daemon.DefaultConfig()
	cfg.State = defaultState()
	cfg.Listen.Socket = defaultSocket()
	return cfg
}

// file merges one configuration file.
func (s sources) file(k *koanf.Koanf, name string) error {
	in := koanf.New(".")
	if err := in.Load(file.Provider(name), yaml.Parser()); err != nil {
		return fmt.Errorf("reading configuration file %s: %w", name, err)
	}
	return merge(k, in.All(), "configuration file "+name)
}

// environment merges the variables that begin with the prefix.
func (s sources) environment(k *koanf.Koanf) error {
	values := map[string]any{}
	for _, pair := range s.env {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || ofOthers(name) {
			continue
		}
		key := strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "__", ".")
		values[key] = value
	}
	return merge(k, values, "the environment")
}

// flag merges the flags that were given.
func (s sources) flag(k *koanf.Koanf) error {
	values := map[string]any{}
	if s.flags == nil {
		return nil
	}
	s.flags.Visit(func(f *pflag.Flag) {
		if _, known := keyTypes[f.Name]; known {
			values[f.Name] = f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values[f.Name] = list.GetSlice()
			}
		}
	})
	return merge(k, values, "the flags")
}

// merge lays values over k, whatever case their keys are written in. Keys that are not known are refused with the one that was probably meant.
func merge(k *koanf.Koanf, values map[string]any, where string) error {
	var errs []error
	for _, key := range slices.Sorted(mapKeys(values)) {
		known, ok := canonicalKeys[strings.ToLower(key)]
		switch {
		case ok:
			value, err := valueOf(known, values[key])
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", where, err))
				continue
			}
			errs = append(errs, k.Set(known, value))
		case isSection(key) && isEmpty(values[key]): // a section that says nothing
		case isSection(key):
			errs = append(errs, fmt.Errorf("%s: %s is a section and must hold keys, not a value", where, key))
		default:
			errs = append(errs, fmt.Errorf("%s: there is no key %s%s", where, key, suggestion(key)))
		}
	}
	return errors.Join(errs...)
}

// configFiles returns the files that were named, or the one at the usual place if it is there.
func configFiles(named []string) []string {
	if len(named) > 0 {
		return named
	}
	const usual = "/etc/retinue/retinued.yaml"
	if _, err := os.Stat(usual); err == nil {
		return []string{usual}
	}
	return nil
}
