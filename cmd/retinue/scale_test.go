package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// scaled is a daemon with one application, whose profile has bounds.
type scaled struct {
	apiv1.UnimplementedApplicationServiceServer
	least, most uint32
}

func (s *scaled) GetApplication(context.Context, *apiv1.GetApplicationRequest) (*apiv1.GetApplicationResponse, error) {
	return &apiv1.GetApplicationResponse{Application: &apiv1.Application{Spec: &apiv1.ApplicationSpec{
		Namespace: "default", Id: "web", Profiles: []*apiv1.ProfileSpec{{Name: "worker"}},
	}}}, nil
}

func (s *scaled) ScaleApplication(_ context.Context, req *apiv1.ScaleApplicationRequest) (*apiv1.ScaleApplicationResponse, error) {
	return &apiv1.ScaleApplicationResponse{Application: &apiv1.Application{Status: &apiv1.ApplicationStatus{
		Profiles: []*apiv1.ProfileStatus{{Name: "worker", Target: req.GetTargets()["worker"], Min: s.least, Max: s.most}},
	}}}, nil
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
		socket := filepath.Join(t.TempDir(), "s")
		stop := serving(t, socket, &scaled{least: c.least, most: c.most})
		var out, complaints bytes.Buffer
		code := run(t.Context(), []string{"--daemon", "unix://" + socket, "scale", "web", c.n}, streams{out: &out, err: &complaints})
		stop()
		if diff := cmp.Diff([]string{c.out, c.err}, []string{out.String(), complaints.String()}); code != exitOK || diff != "" {
			t.Errorf("scaling to %s within %d..%d gave code %d (-want +got):\n%s", c.n, c.least, c.most, code, diff)
		}
	}
}
