// Package examples_test runs the manifests beside it on a fleet of real processes.
package examples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/cluster/local"
	"github.com/retinue-sched/retinue/sdk/client"
	"github.com/retinue-sched/retinue/test/fleet"
)

// The test program is the local cluster's, too.
func TestMain(m *testing.M) {
	if code, entered := local.Entered(); entered {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// manifest reads a manifest strictly: a key that the API does not have is an error.
func manifest(t *testing.T, name string) *apiv1.ApplicationSpec {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	json, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	spec := &apiv1.ApplicationSpec{}
	if err := protojson.Unmarshal(json, spec); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return spec
}

// start starts a fleet that ends with the test.
func start(t *testing.T) *fleet.Fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the programs and starts them")
	}
	dir, err := os.MkdirTemp("", "retinue-examples-") //nolint:usetesting // the test's own folder is longer than the path of a socket may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, "bin")
	if err = fleet.Build(t.Context(), bin, "cmd/retinued", "cmd/retinue-executor"); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Start(t.Context(), fleet.Config{
		Dir: dir, Bin: bin, Up: func(ctx context.Context, dir string) error { return local.Up(ctx, local.Options{Dir: dir}) },
	})
	t.Cleanup(func() {
		if t.Failed() {
			f.ShowLogs(context.Background(), t.Output())
		}
		if stopErr := f.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The application of app.yaml is accepted as it stands, runs tasks on more than the one executor that it begins with, and leaves no pod behind.
func TestApp(t *testing.T) {
	spec := manifest(t, "app.yaml")
	f := start(t)
	_, err := f.Client.Applications.ApplyApplication(t.Context(), &apiv1.ApplyApplicationRequest{Spec: spec, MustBeNew: true}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]bool{}
	job := client.Job{Application: spec.GetId(), Changed: func(task *apiv1.Task) {
		if task.GetState() == apiv1.TaskState_TASK_STATE_SUCCEEDED {
			outputs[string(task.GetResult().GetOutput())] = true
		}
	}}
	const tasks = 40
	for i := range tasks { // long enough for the backlog to be noticed
		job.Tasks = append(job.Tasks, &apiv1.TaskSpec{Command: []string{"sh", "-c", fmt.Sprintf("sleep 0.2; printf %d", i)}})
	}
	if err = f.Client.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	got, err := f.Client.Applications.GetApplication(t.Context(), &apiv1.GetApplicationRequest{Application: spec.GetId()})
	if err != nil {
		t.Fatal(err)
	}
	profile := got.GetApplication().GetStatus().GetProfiles()[0]
	if most := spec.GetProfiles()[0].GetMax(); profile.GetPeak() < 2 || profile.GetPeak() > most {
		t.Errorf("at most %d executors worked at once, want 2 to %d", profile.GetPeak(), most)
	}
	if len(outputs) != tasks {
		t.Errorf("%d different outputs, want %d", len(outputs), tasks)
	}
	if _, err = f.Client.Applications.DeleteApplication(t.Context(), &apiv1.DeleteApplicationRequest{Application: spec.GetId()}); err != nil {
		t.Fatal(err)
	}
	if pods, _, err := f.Pods(t.Context(), spec.GetId()); err != nil || len(pods) != 0 {
		t.Errorf("%d pods are left, %v", len(pods), err)
	}
}
