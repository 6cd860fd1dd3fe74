package client

import (
	"context"
	"fmt"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// Executors lists the executors of an application by number, however many there are. The daemon's default namespace is meant when namespace is
// empty. The error is that of the call which did not work.
func (c *Client) Executors(ctx context.Context, application, namespace string) ([]*apiv1.Executor, error) {
	var all []*apiv1.Executor
	req := &apiv1.ListExecutorsRequest{Application: application, Namespace: namespace}
	for {
		got, err := c.Applications.ListExecutors(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("listing the executors of application %s: %w", application, err)
		}
		all = append(all, got.GetExecutors()...)
		if req.PageToken = got.GetNextPageToken(); req.GetPageToken() == "" {
			return all, nil
		}
	}
}
