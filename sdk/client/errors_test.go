package client_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retinue-sched/retinue/sdk/client"
)

// The daemon's sentence comes out as it said it, however deep the error lies.
func TestExplain(t *testing.T) {
	notFound := status.Error(codes.NotFound, "there is no application x")
	for _, err := range []error{notFound, fmt.Errorf("submitting: %w", fmt.Errorf("again: %w", notFound)), errors.Join(errors.New("other"), notFound)} {
		kind, text, ok := client.Explain(err)
		if !ok || kind != client.NotFound || text != "there is no application x" {
			t.Errorf("%v gave %v, %q, %t", err, kind, text, ok)
		}
	}
	for _, err := range []error{nil, errors.New("no call")} {
		if _, _, ok := client.Explain(err); ok {
			t.Errorf("%v was taken for an error of a call", err)
		}
	}
}
