package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

func newLocal(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "local",
		Short: "A cluster on this machine, without Kubernetes: processes for pods",
		Args:  noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "folder of the cluster; retinue/local in $XDG_STATE_HOME or ~/.local/state when empty")
	cmd.AddCommand(newLocalUp(p, &dir), newLocalDown(p, &dir), newLocalStatus(p, &dir), newLocalKubeconfig(p, &dir))
	return cmd
}

func newLocalUp(p *program, dir *string) *cobra.Command {
	var options local.Options
	cmd := &cobra.Command{
		Use: "up", Short: "Start the cluster; it goes on when this command has ended", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Dir, options.Out = *dir, p.out
			return local.Up(cmd.Context(), options)
		},
	}
	cmd.Flags().IntVar(&options.MaxPods, "max-pods", 0, "how many pods run at once; 110 when 0")
	cmd.Flags().IntVar(&options.Port, "port", 0, "port on 127.0.0.1; any that is free when 0")
	return cmd
}

func newLocalDown(p *program, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the cluster and every process of its pods", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			before, err := local.Inspect(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			if err := local.Down(cmd.Context(), *dir); err != nil { // even if nothing runs: an earlier end may have been cut short
				return err
			}
			if !before.Running {
				p.printf("nothing runs in %s\n", before.Dir)
				return nil
			}
			p.printf("local cluster ended\n")
			return nil
		},
	}
}

func newLocalStatus(p *program, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say whether the cluster runs, and what", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := local.Inspect(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			if !status.Running {
				return failedf("no local cluster runs in %s: start one with `retinue local up`", status.Dir)
			}
			p.printf("running   %t (process %d, since %s)\nready     %t\nurl       %s\nkubeconfig %s\nlog       %s\n",
				status.Running, status.PID, status.Started.Format("15:04:05"), status.Ready, status.URL, status.Kubeconfig, status.Log)
			for _, phase := range slices.Sorted(maps.Keys(status.Pods)) {
				p.printf("pods      %d %s\n", status.Pods[phase], phase)
			}
			return nil
		},
	}
}

func newLocalKubeconfig(p *program, dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the cluster's kubeconfig, for KUBECONFIG and --cluster.kubeconfig", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := local.Inspect(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			if !status.Running {
				return failedf("no local cluster runs in %s: start one with `retinue local up`", status.Dir)
			}
			p.printf("%s\n", status.Kubeconfig)
			return nil
		},
	}
}
