//go:build wasip1

// Command module is the policy elastic as a WebAssembly module.
package main

import (
	"github.com/retinue-sched/retinue/plugins/elastic"
	"github.com/retinue-sched/retinue/sdk"
)

func init() { sdk.Register(&elastic.Policy{}) }

func main() {}
