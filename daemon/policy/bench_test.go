package policy

import (
	"fmt"
	"testing"

	"github.com/retinue-sched/retinue/hostabi"
)

// A question about many executors to a shipped policy, with all limits on: the view is filled and encoded, copied in, decided on, and the
// decision checked and copied out.
func BenchmarkAsk(b *testing.B) {
	for _, policy := range []string{"direct", "elastic"} {
		for _, executors := range []uint32{100, 10_000} {
			for _, hook := range hooks() {
				b.Run(fmt.Sprintf("%s/%v/%d", policy, hook, executors), func(b *testing.B) {
					h := shippedHost(b)
					if _, _, err := h.Bind(b.Context(), "shop/a", Binding{Policy: policy}); err != nil {
						b.Fatal(err)
					}
					question := running(executors)
					b.ReportAllocs()
					for b.Loop() {
						if answer := h.Ask(b.Context(), "shop/a", hook, question); answer.Fault != "" {
							b.Fatal(answer.Fault)
						}
					}
				})
			}
		}
	}
}

// What of BenchmarkAsk is the view: filling and encoding it.
func BenchmarkEncode(b *testing.B) {
	for _, executors := range []uint32{100, 10_000} {
		b.Run(fmt.Sprint(executors), func(b *testing.B) {
			d := newDesk()
			d.hook, d.question = hostabi.HookAllocate, running(executors)
			b.ReportAllocs()
			for b.Loop() {
				d.encode(hostabi.Projection{})
			}
		})
	}
}

// Making an instance: the first of a policy, and what a fault costs.
func BenchmarkInstantiate(b *testing.B) {
	h := shippedHost(b)
	m, _, err := h.library.find(b.Context(), "direct")
	if err != nil {
		b.Fatal(err)
	}
	first, f := h.engine.start(b.Context(), m, noSettings, leastReserve)
	if f != nil {
		b.Fatal(f)
	}
	defer first.close(b.Context())
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			i, f := h.engine.start(b.Context(), m, noSettings, leastReserve)
			if f != nil {
				b.Fatal(f)
			}
			i.close(b.Context())
		}
	})
	b.Run("revive", func(b *testing.B) {
		for b.Loop() {
			i, f := h.engine.revive(b.Context(), m, first.image)
			if f != nil {
				b.Fatal(f)
			}
			i.close(b.Context())
		}
	})
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(first.image.memory)))
		for b.Loop() {
			if !first.restore(first.image) {
				b.Fatal("it has grown")
			}
		}
	})
}
