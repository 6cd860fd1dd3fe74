package local_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// outage is a network that a test can take away from a client.
type outage struct {
	lists atomic.Int32 // requests for all objects, as a list or as the start of a watch

	mu    sync.Mutex
	down  bool
	open  []io.Closer // the bodies of watches
	inner http.RoundTripper
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	o.inner = next
	return o
}

// begin cuts all watches and lets no request through.
func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = true
	for _, body := range o.open {
		body.Close()
	}
	o.open = nil
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = false
}

// RoundTrip passes the request on while the network is there.
func (o *outage) RoundTrip(request *http.Request) (*http.Response, error) {
	o.mu.Lock()
	down := o.down
	o.mu.Unlock()
	if down {
		return nil, errors.New("the network is down")
	}
	query := request.URL.Query()
	if query.Get("sendInitialEvents") == "true" || query.Get("watch") == "" {
		o.lists.Add(1)
	}
	answer, err := o.inner.RoundTrip(request)
	if err == nil && query.Get("watch") != "" {
		o.mu.Lock()
		o.open = append(o.open, answer.Body)
		o.mu.Unlock()
	}
	return answer, err
}
