package meter

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// How far apart refills are, at worst: until then, nobody can stop a guest. The time is that of the thread, so that what else runs on the
// machine does not count.
func BenchmarkSpacing(b *testing.B) {
	for name, m := range hostiles() {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			metered := rewrite(b, m.Bytes())
			i := newEngine(b, compiler()).instantiate(b, metered.Wasm, metered)
			i.prepare()
			var gaps []time.Duration
			for b.Loop() {
				last := threadTime(b)
				i.burn(b, func(int32) {
					now := threadTime(b)
					gaps = append(gaps, now-last)
					last = now
				})
			}
			slices.Sort(gaps)
			b.ReportMetric(gaps[len(gaps)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(gaps[len(gaps)*99/100].Seconds()*1000, "p99-ms")
			b.ReportMetric(gaps[len(gaps)-1].Seconds()*1000, "worst-ms")
		})
	}
}

func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}
