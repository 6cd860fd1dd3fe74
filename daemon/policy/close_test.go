package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
)

// The end of the host waits for those who make instances just then: their memory is given back with the engine.
func TestCloseWaitsForThoseWhoMakeInstances(t *testing.T) {
	spinning := slices.Concat(localGet(1), i32Const(2), []byte{0x4b, 0x04, 0x40, 0x03, 0x40}, i32Const(scratchAt), i32Const(7), store32,
		[]byte{0x0c, 0, 0x0b, 0x0b}) // with settings that are not empty: for ever
	h := newHost(t, func(c *Config) { c.Fuel, c.StartTimeout = 1<<60, time.Minute })
	h.patience = time.Minute
	m := bind(t, h, "shop/a", guest{bodies: map[string][]byte{hostabi.ExportConfigure: code(spinning, i64Const(1))}}.assemble(t))
	ctx, leave := context.WithCancel(t.Context())
	var work sync.WaitGroup
	started := make(chan struct{}, 3)
	for _, try := range []func() error{
		func() error { return h.Try(ctx, Binding{Policy: m.Name, Settings: `{"n":1}`}) },
		func() error {
			_, _, err := h.Bind(ctx, "shop/b", Binding{Policy: m.Name, Settings: `{"n":2}`})
			return err
		},
		func() error { _, _, err := h.SetDefault(ctx, Binding{Policy: m.Name, Settings: `{"n":3}`}); return err },
	} {
		work.Go(func() {
			started <- struct{}{}
			if err := try(); !errors.Is(err, context.Canceled) && !errors.Is(err, errClosed) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	for range cap(started) {
		<-started
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Close(t.Context()) }()
	leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	work.Wait()
	if err := h.Try(t.Context(), Binding{Policy: m.Name}); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// What does not start gives back the addresses that were kept for its memory, and a policy that is not needed any more its image.
func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		t.Skip("this system does not tell what a process has mapped")
	}
	h := newHost(t)
	broken := guest{data: map[uint32][]byte{8*pageSize - 4: make([]byte, 8)}} // its data reaches past its memory
	m := bind(t, h, "shop/a", remembering().assemble(t))
	try := func(n int) {
		if _, err := h.Load(t.Context(), "broken", broken.assemble(t)); err == nil {
			t.Fatal("it is loaded")
		}
		if err := h.Try(t.Context(), Binding{Policy: m.Name, Settings: fmt.Sprintf(`{"n":%d}`, n)}); err != nil {
			t.Fatal(err)
		}
	}
	try(0)
	before, files := reserved(t), opened(t)
	const tries = 30
	for n := range tries {
		try(n + 1)
	}
	if more := reserved(t) - before; more > tries/3*int(h.cfg.MemoryLimit>>10) { // the heap reserves addresses, too, but not so many
		t.Errorf("%d KiB more are reserved", more)
	}
	if now := opened(t); now > files {
		t.Errorf("%d more files are open", now-files)
	}
}

// reserved returns how many KiB of addresses are kept without being used.
func reserved(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "---p") {
			total += int((to - from) >> 10)
		}
	}
	return total
}

// opened returns how many images are open as files.
func opened(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(name, "retinue-policy") {
			n++
		}
	}
	return n
}
