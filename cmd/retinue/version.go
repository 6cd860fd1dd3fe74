package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(p *program) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Say what this program is", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			switch format {
			case "json":
				return json.NewEncoder(p.out).Encode(map[string]string{
					"program": "retinue", "version": programVersion(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			case "text":
				p.printf("retinue %s\n", programVersion())
				return nil
			default:
				return usagef("%q is not a format: write text or json", format)
			}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
