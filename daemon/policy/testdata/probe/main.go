// Program probe is a policy that looks for the world around it and tells what it found in the note of its decision.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/retinue-sched/retinue/sdk"
)

func init() { sdk.Register(probe{}) }

func main() {}

type probe struct{}

// Configure takes nothing.
func (probe) Configure(s sdk.Settings) error { return s.Decode() }

// Allocate asks for nothing and tells what it saw.
func (probe) Allocate(_ *sdk.View, r *sdk.Result) error {
	var seen []string
	tell := func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
	tell("args %d", len(os.Args))
	var names []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	sort.Strings(names)
	tell("env %s", strings.Join(names, " "))
	tell("time %s", time.Now().UTC().Format(time.RFC3339))
	began := time.Now()
	time.Sleep(2 * time.Second)
	tell("slept %v", time.Since(began).Round(time.Second))
	_, err := os.ReadFile("/etc/passwd")
	tell("open %s", reason(err))
	_, err = os.ReadDir("/")
	tell("listing %s", reason(err))
	tell("mkdir %s", reason(os.Mkdir("/x", 0o700)))
	if _, err = net.DialTimeout("tcp", "127.0.0.1:80", time.Second); err != nil {
		tell("dial refused")
	}
	text, err := json.Marshal(map[string]int{"a": 1})
	tell("json %s%s", text, reason(err))
	_, err = os.Stdin.Read(make([]byte, 1))
	tell("stdin %s", reason(err))
	fmt.Fprintln(os.Stderr, "printed")
	r.Note(strings.Join(seen, "\n"))
	return nil
}

// reason names the system's error behind err.
func reason(err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}
