//go:build wasip1

// Command module is the policy direct as a WebAssembly module.
package main

import (
	"github.com/retinue-sched/retinue/plugins/direct"
	"github.com/retinue-sched/retinue/sdk"
)

func init() { sdk.Register(&direct.Policy{}) }

func main() {}
