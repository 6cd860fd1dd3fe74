package driver

import (
	"context"
	"time"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
	"github.com/retinue-sched/retinue/daemon/application"
	"github.com/retinue-sched/retinue/daemon/runner"
)

const (
	watchEvery = 200 * time.Millisecond // the shortest time between two looks of an application watch
	watchBytes = 1 << 20                // of what varies in size, in one message of a watch
)

// WatchApplications sends applications as they are, and again whenever one changes.
func (s *applicationService) WatchApplications(req *apiv1.WatchApplicationsRequest, stream apiv1.ApplicationService_WatchApplicationsServer) error {
	if err := within(stream.Context(), req.GetNamespace()); err != nil {
		return err
	}
	return tell(s.Server, stream, func(ctx context.Context, send func(*apiv1.WatchApplicationsResponse) error) error {
		pace := time.NewTicker(watchEvery)
		defer pace.Stop()
		var before []sight
		for first := true; ; first = false {
			changed := s.parts.Applications.Changed()
			now := see(s.visible(ctx, req.GetNamespace(), req.GetApplication()))
			if err := s.show(before, now, first, send); err != nil {
				return err
			}
			before = now
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
			case <-pace.C:
			}
		}
	})
}

// sight is what an application looks like.
type sight struct {
	app    *runner.Member
	spec   *apiv1.ApplicationSpec
	status *application.Status
}

func see(members []*runner.Member) []sight {
	out := make([]sight, len(members))
	for i, m := range members {
		out[i] = sight{app: m, spec: m.Definition().Source, status: m.Current()}
	}
	return out
}

// show sends the difference between two looks in as many messages as it takes, and one after the first look even if there is nothing. A
// specification is sent again only if it changed.
func (s *applicationService) show(before, now []sight, first bool, send func(*apiv1.WatchApplicationsResponse) error) error {
	gone := make(map[runner.Key]sight, len(before))
	for _, was := range before {
		gone[was.app.Key()] = was
	}
	msg := &apiv1.WatchApplicationsResponse{}
	bytes := 0
	for _, is := range now {
		key := is.app.Key()
		was := gone[key]
		delete(gone, key)
		if is == was {
			continue
		}
		spec := &apiv1.ApplicationSpec{Id: key.ID, Namespace: key.Namespace}
		if is.spec != was.spec {
			spec = outline(is.spec)
		}
		app := s.application(is.app, is.status, spec)
		if bytes += around(app); bytes > watchBytes && len(msg.GetApplications()) > 0 {
			if err := send(msg); err != nil {
				return err
			}
			msg, bytes = &apiv1.WatchApplicationsResponse{}, around(app)
		}
		msg.Applications = append(msg.Applications, app)
	}
	for _, was := range before {
		if key := was.app.Key(); gone[key].app != nil {
			msg.Deleted = append(msg.Deleted, key.String())
		}
	}
	if first || len(msg.GetApplications())+len(msg.GetDeleted()) > 0 {
		return send(msg)
	}
	return nil
}
