package hostabi_test

import (
	"fmt"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// crowd returns a view with n executors, as a large application has them.
func crowd(n int) *hostabi.View {
	v := goldenView()
	v.Executors = make([]hostabi.ExecutorRow, n)
	nodes := make([]string, 500)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
	}
	for i := range v.Executors {
		v.Executors[i] = executor(uint64(i), 1)
		v.Executors[i].Node = nodes[i%len(nodes)]
		v.Executors[i].Zone = nodes[i%3][:3]
	}
	return &v
}

// Once its memory has grown, encoding needs no more.
func TestEncodingAllocatesNothing(t *testing.T) {
	v := crowd(1000)
	buffer := v.Encode(nil, hostabi.Projection{})
	if n := testing.AllocsPerRun(20, func() { buffer = v.Encode(buffer[:0], hostabi.Projection{}) }); n != 0 {
		t.Errorf("a view: %v allocations, want 0", n)
	}
	d := goldenDecision()
	var e hostabi.DecisionEncoder
	answer := e.Encode(nil, d)
	if n := testing.AllocsPerRun(20, func() { answer = e.Encode(answer[:0], d) }); n != 0 {
		t.Errorf("a decision: %v allocations, want 0", n)
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = hostabi.ParseBlock(buffer) }); n != 0 {
		t.Errorf("parsing a view: %v allocations, want 0", n)
	}
}

func BenchmarkEncodeView(b *testing.B) {
	direct := hostabi.Projection{}.With(hostabi.TableExecutors, hostabi.ExecutorsID, hostabi.ExecutorsProfile,
		hostabi.ExecutorsPhase, hostabi.ExecutorsFlags, hostabi.ExecutorsBusySlots)
	for _, c := range []struct {
		name string
		p    hostabi.Projection
	}{{"all-columns", hostabi.Projection{}}, {"columns-of-direct", direct}} {
		b.Run(c.name+"/executors=10000", func(b *testing.B) {
			v := crowd(10_000)
			buffer := v.Encode(nil, c.p)
			b.SetBytes(int64(len(buffer)))
			b.ReportAllocs()
			for b.Loop() {
				buffer = v.Encode(buffer[:0], c.p)
			}
		})
	}
}

func BenchmarkParseBlock(b *testing.B) {
	block := crowd(10_000).Encode(nil, hostabi.Projection{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := hostabi.ParseBlock(block); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDecision(b *testing.B) {
	d := goldenDecision()
	for id := range uint64(5000) {
		d.Releases = append(d.Releases, hostabi.Release{Executor: id, Mode: hostabi.Drain, Reason: "over target"})
	}
	answer := hostabi.EncodeDecision(nil, d)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := hostabi.DecodeDecision(answer); err != nil {
			b.Fatal(err)
		}
	}
}
