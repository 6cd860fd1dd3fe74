package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// scaled is a daemon with one application, whose profile has bounds.
type scaled struct {
	apiv1.UnimplementedApplicationServiceServer
	least, most uint32
	running     uint32
	mode        string
	releaseIdle time.Duration
}

func (s *scaled) GetApplication(context.Context, *apiv1.GetApplicationRequest) (*apiv1.GetApplicationResponse, error) {
	return &apiv1.GetApplicationResponse{Application: &apiv1.Application{Spec: &apiv1.ApplicationSpec{
		Namespace: "default", Id: "web", Profiles: []*apiv1.ProfileSpec{{Name: "worker"}},
	}}}, nil
}

func (s *scaled) ScaleApplication(_ context.Context, req *apiv1.ScaleApplicationRequest) (*apiv1.ScaleApplicationResponse, error) {
	return &apiv1.ScaleApplicationResponse{Application: &apiv1.Application{
		Spec: &apiv1.ApplicationSpec{Profiles: []*apiv1.ProfileSpec{{Name: "other"}, {Name: "worker", ReleaseIdle: durationpb.New(s.releaseIdle)}}},
		Status: &apiv1.ApplicationStatus{Mode: s.mode, Profiles: []*apiv1.ProfileStatus{
			{Name: "other", Running: 9},
			{Name: "worker", Target: req.GetTargets()["worker"], Min: s.least, Max: s.most, Running: s.running},
		}},
	}}, nil
}

// What comes of scaling is what the bounds allow, and that they do is said.
func TestScaleSaysWhatHolds(t *testing.T) {
	for _, c := range []struct {
		least, most uint32
		n           string
		out, err    string
	}{
		{1, 4, "3", "application default/web scaled to 3 executors of profile worker\n", ""},
		{1, 4, "1", "application default/web scaled to 1 executor of profile worker\n", ""},
		{
			2, 4, "0", "application default/web scaled to 2 executors of profile worker\n",
			"retinue: 0 is out of the bounds of profile worker, which has a minimum of 2 and a maximum of 4: `retinue apply` changes them\n",
		},
		{
			1, 0, "0", "application default/web scaled to 1 executor of profile worker\n",
			"retinue: 0 is out of the bounds of profile worker, which has a minimum of 1: `retinue apply` changes them\n",
		},
		{
			0, 4, "9", "application default/web scaled to 4 executors of profile worker\n",
			"retinue: 9 is out of the bounds of profile worker, which has a minimum of 0 and a maximum of 4: `retinue apply` changes them\n",
		},
	} {
		out, complaints := scaling(t, &scaled{least: c.least, most: c.most}, c.n)
		if diff := cmp.Diff([]string{c.out, c.err}, []string{out, complaints}); diff != "" {
			t.Errorf("scaling to %s within %d..%d (-want +got):\n%s", c.n, c.least, c.most, diff)
		}
	}
}

// scaling is what comes of scaling an application of a daemon.
func scaling(t *testing.T, daemon *scaled, n string) (out, complaints string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	stop := serving(t, socket, daemon)
	defer stop()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--daemon", "unix://" + socket, "scale", "web", n}, streams{out: &stdout, err: &stderr}); code != exitOK {
		t.Errorf("scaling to %s gave code %d, want 0", n, code)
	}
	return stdout.String(), stderr.String()
}

// Who scales below what lives is told what becomes of it, and who scales where a policy does is told that it does.
func TestScaleSaysWhatStays(t *testing.T) {
	const (
		stay = "; 3 live: idle executors stay until `retinue drain` or the profile's releaseIdle lets them go"
		mode = "; the policy decides in mode scale: the target is kept for mode follow"
	)
	for _, c := range []struct {
		daemon scaled
		n      string
		want   string
	}{
		{scaled{running: 3, mode: "follow"}, "1", "application default/web scaled to 1 executor of profile worker" + stay},
		{scaled{running: 3, mode: "follow"}, "3", "application default/web scaled to 3 executors of profile worker"},
		{scaled{running: 3, mode: "follow", least: 3}, "1", "application default/web scaled to 3 executors of profile worker"},
		{scaled{running: 3, mode: "follow", releaseIdle: time.Minute}, "1", "application default/web scaled to 1 executor of profile worker"},
		{scaled{running: 3, mode: "scale"}, "1", "application default/web scaled to 1 executor of profile worker" + mode},
		{scaled{running: 1, mode: "scale"}, "1", "application default/web scaled to 1 executor of profile worker" + mode},
	} {
		if out, _ := scaling(t, &c.daemon, c.n); out != c.want+"\n" {
			t.Errorf("scaling to %s with %d live said\n%swant\n%s", c.n, c.daemon.running, out, c.want)
		}
	}
}
