package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/sdk/client"
)

func newApply(p *program) *cobra.Command {
	var files []string
	var mustBeNew, dryRun bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create applications, or change them to what a file says",
		Long: `The file holds YAML, one application in each document. All of it is read before anything is done.
Durations are written 10s or 1m30s. A podTemplate is a map, as in Kubernetes, and is where every pod of the profile starts from.
Environment variables are a map, NAME: value, or a list of name and value.
"retinue help manifest" lists all keys with their defaults, as docs/application.md does.`,
		Example: `  retinue apply -f app.yaml
  printf 'id: hello\nprofiles: [{name: worker, target: 2}]\n' | retinue apply -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usagef("say what to apply: retinue apply -f FILE, or -f - for the standard input")
			}
			specs, err := p.readManifests(files)
			if err != nil {
				return err
			}
			if dryRun {
				for _, spec := range specs {
					p.printf("application %s is well-formed (nothing was done; what only the daemon knows was not checked)\n", clean(spec.GetId()))
				}
				return nil
			}
			return p.connected(cmd.Context(), func(c *client.Client) error { return p.apply(cmd.Context(), c, specs, mustBeNew) })
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file with applications in YAML, or - for the standard input; may be given several times")
	cmd.Flags().BoolVar(&mustBeNew, "must-be-new", false, "refuse to change an application that is there already")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only read the files and say what is wrong with them")
	return cmd
}

// maxManifest bounds one file, so that a wrong name does not fill the memory.
const maxManifest = 4 << 20

// readManifests reads all files before anything is done with one of them.
func (p *program) readManifests(files []string) ([]*apiv1.ApplicationSpec, error) {
	var all []*apiv1.ApplicationSpec
	for _, name := range files {
		content, err := p.readFile(name)
		if err != nil {
			return nil, usagef("reading %s: %v", name, err)
		}
		if len(content) > maxManifest {
			return nil, usagef("reading %s: it has more than %d bytes, which no description of applications has", name, maxManifest)
		}
		if name == "-" {
			name = "standard input"
		}
		specs, err := readManifest(name, content)
		if err != nil {
			return nil, usagef("%v", err)
		}
		all = append(all, specs...)
	}
	for _, spec := range all {
		switch {
		case spec.GetNamespace() == "":
			spec.Namespace = p.namespace
		case p.namespace != "" && p.namespace != spec.GetNamespace():
			return nil, usagef("application %s is of namespace %s, and --namespace says %s: leave one of them out", clean(spec.GetId()), clean(spec.GetNamespace()), p.namespace)
		}
	}
	return all, nil
}

func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(p.in, maxManifest+1))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(file, maxManifest+1))
}

// apply sends the specifications one after the other, and says of each what came of it.
func (p *program) apply(ctx context.Context, c *client.Client, specs []*apiv1.ApplicationSpec, mustBeNew bool) error {
	for _, spec := range specs {
		if err := p.applyOne(ctx, c, spec, mustBeNew); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) applyOne(ctx context.Context, c *client.Client, spec *apiv1.ApplicationSpec, mustBeNew bool) error {
	ctx, cancel := p.request(ctx)
	defer cancel()
	var before *apiv1.Application
	if spec.GetId() != "" && !mustBeNew {
		got, err := c.Applications.GetApplication(ctx, &apiv1.GetApplicationRequest{Application: spec.GetId(), Namespace: spec.GetNamespace()})
		if err == nil { // whatever is wrong shows when it is applied
			before = got.GetApplication()
		}
	}
	if err := working(before); err != nil {
		return err
	}
	applied, err := c.Applications.ApplyApplication(ctx, &apiv1.ApplyApplicationRequest{Spec: spec, MustBeNew: mustBeNew})
	if err != nil {
		return err
	}
	done := "changed"
	switch {
	case applied.GetCreated():
		done = "created"
	case before != nil && same(before, applied.GetApplication()):
		done = "unchanged"
	}
	p.printf("application %s %s\n", keyOf(applied.GetApplication()), done)
	return nil
}

// same reports whether an application was before as it is now: the specification, and the mode, which `policy load` sets beside it.
func same(before, now *apiv1.Application) bool {
	return proto.Equal(before.GetSpec(), now.GetSpec()) && before.GetStatus().GetMode() == now.GetStatus().GetMode()
}
