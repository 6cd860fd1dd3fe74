package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/retinue-sched/retinue/daemon/telemetry"
)

func newTelemetry(t *testing.T, change func(*telemetry.Config)) *telemetry.Telemetry {
	t.Helper()
	cfg := telemetry.DefaultConfig()
	cfg.Address = "127.0.0.1:0"
	cfg.Version = "v1.2.3"
	if change != nil {
		change(&cfg)
	}
	tel, err := telemetry.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// serve runs an Admin and returns a function that gets a path from it.
func serve(t *testing.T, tel *telemetry.Telemetry, checks ...telemetry.Check) (get func(path string) (int, string)) {
	t.Helper()
	admin, err := tel.Admin(checks)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- admin.Run(ctx) }()
	over := errors.New("the test is over")
	t.Cleanup(func() {
		stop(over)
		if err := <-ended; !errors.Is(err, over) {
			t.Errorf("Run ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t)
	})
	return func(path string) (int, string) {
		resp, err := http.Get("http://" + admin.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

// Readiness follows its checks, and says which does not hold; being alive does not depend on them.
func TestProbes(t *testing.T) {
	var missing atomic.Pointer[error]
	compiling := errors.New("the default policy is being compiled")
	missing.Store(&compiling)
	get := serve(t, newTelemetry(t, nil),
		telemetry.Check{Name: "pods", Func: func(context.Context) error { return nil }},
		telemetry.Check{Name: "policies", Func: func(context.Context) error { return *missing.Load() }})
	expect := func(path string, code int, body string) {
		t.Helper()
		gotCode, gotBody := get(path)
		if gotCode != code {
			t.Errorf("%s: status %d, want %d", path, gotCode, code)
		}
		if diff := cmp.Diff(body, gotBody); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", path, diff)
		}
	}
	red := "[+]pods ok\n[-]policies failed: the default policy is being compiled\nreadyz check failed\n"
	expect("/readyz", 503, red)
	expect("/readyz?verbose", 503, red)
	expect("/livez", 200, "ok")
	var fine error
	missing.Store(&fine)
	expect("/readyz", 200, "ok")
	expect("/readyz?verbose", 200, "[+]pods ok\n[+]policies ok\nreadyz check passed\n")
	expect("/livez?verbose", 200, "[+]ping ok\nlivez check passed\n")
}

// What parts of the daemon count is seen, beside what was built.
func TestMetrics(t *testing.T) {
	tel := newTelemetry(t, nil)
	decisions, err := tel.Meter("policy").Int64Counter("retinue.policy.decisions")
	if err != nil {
		t.Fatal(err)
	}
	decisions.Add(t.Context(), 3)
	_, text := serve(t, tel)("/metrics")
	for _, line := range []string{"retinue_policy_decisions_total 3\n", `retinue_build_info{goversion="go1.`, `version="v1.2.3"} 1`, "go_goroutines ", `service_name="retinued"`} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in:\n%s", line, text)
		}
	}
}

// An address that is in use is said to be.
func TestAddressInUse(t *testing.T) {
	tel := newTelemetry(t, nil)
	first, err := tel.Admin(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = newTelemetry(t, func(c *telemetry.Config) { c.Address = first.Addr().String() }).Admin(nil)
	if err == nil || !strings.Contains(err.Error(), first.Addr().String()) || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("error %v", err)
	}
}

// A check that hangs makes the daemon unready; it does not hang the probe.
func TestSlowCheckIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := newTelemetry(t, func(c *telemetry.Config) { c.Address = "" })
		admin, err := tel.Admin([]telemetry.Check{{Name: "slow", Func: func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		answer := &recorder{header: http.Header{}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		admin.ServeHTTP(answer, req)
		want := "[-]slow failed: it took longer than 2s\nreadyz check failed\n"
		if answer.code != 503 || answer.body.String() != want || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %d %q, want %q", time.Since(began), answer.code, answer.body.String(), want)
		}
	})
}

type recorder struct {
	header http.Header
	code   int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
