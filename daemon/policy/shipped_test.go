package policy

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/retinue-sched/retinue/hostabi"
)

// fleet is a question with n executors of one profile.
type fleet struct {
	executors []hostabi.ExecutorRow
	profile   hostabi.ProfileRow
	decision  hostabi.DecisionRow
}

func (f *fleet) View(v *hostabi.View) {
	v.Decision = f.decision
	v.Profiles = append(v.Profiles[:0], f.profile)
	v.Executors = append(v.Executors[:0], f.executors...)
}

// wanting is a question that the built-in policy answers by asking for n executors.
func wanting(n uint32) *fleet {
	return &fleet{
		decision: hostabi.DecisionRow{ID: 1, ElapsedMS: 1000, WallMS: 1_700_000_000_000, Seed: 7, Application: "shop/a", Trigger: hostabi.TriggerTargets, APIBudget: hostabi.None},
		profile: hostabi.ProfileRow{
			ID: 1, Name: "default", Target: n, Ceiling: n, Max: 2 * n, Slots: 1, OldestQueuedMS: -1, BatchSize: n,
			LifetimeLeft: hostabi.None, Mode: hostabi.ModeFollow, CreationTimeoutMS: 60_000, IdleTimeoutMS: 60_000,
		},
	}
}

// newHost returns a host that keeps what it compiles in memory. It is closed at the end of the test.
func newHost(t testing.TB, change ...func(*Config)) *Host {
	t.Helper()
	cfg := DefaultConfig()
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg, slog.New(slog.DiscardHandler), noop.NewMeterProvider().Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(t.Context()); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	return h
}

// The default policy of a plain host decides as a WebAssembly module.
func TestDefaultDecidesInTheSandbox(t *testing.T) {
	h := newHost(t)
	if _, _, err := h.SetDefault(t.Context(), h.cfg.Default); err != nil {
		t.Fatal(err)
	}
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(3))
	if answer.Fault != "" || answer.By != h.Modules()[0].Digest || len(answer.Decision.Creates) != 1 || answer.Decision.Creates[0].Count != 3 {
		t.Errorf("answer %+v, want 3 executors asked for by %s", answer, h.Modules()[0].Digest)
	}
}
