package policy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
)

// A module that is not fit is refused with one sentence that says what is wrong with it, and nothing else changes.
func TestRefusals(t *testing.T) {
	with := func(body string, code []byte) guest { return guest{bodies: map[string][]byte{body: code}} }
	typed := func(export string, s signature) guest {
		return guest{types: map[string]signature{export: s}, bodies: map[string][]byte{export: code(trap)}}
	}
	importing := func(module, name string, s signature) []byte {
		return guest{imports: []hostFunction{{module: module, name: name, signature: s}}}.assemble(t)
	}
	plain := guest{}.assemble(t)
	huge := guest{custom: section(0, [][]byte{make([]byte, 9<<20)})}.bare()
	for name, test := range map[string]struct {
		wasm []byte
		want string
	}{
		"nothing":                {nil, "it is not a WebAssembly module: it is empty"},
		"text":                   {[]byte("#!/bin/sh\necho hello\n"), "it is not a WebAssembly module"},
		"a component":            {[]byte("\x00asm\x0d\x00\x01\x00"), "components are not supported"},
		"only a header":          {[]byte(wasmMagic + coreVersion), "it lacks the export memory"},
		"cut short":              {plain[:len(plain)/2], "it is damaged"},
		"a body that is junk":    {with(hostabi.ExportAllocate, []byte{0, 0xff, 0x0b}).assemble(t), "is not known to this host"},
		"many unknown imports":   {strangers(t, 3_000), "it imports m.f0, m.f1, m.f2, m.f3, m.f4 and 2995 more, which the host does not offer; it offers retinue: log"},
		"data outside of memory": {guest{data: map[uint32][]byte{8*pageSize - 4: make([]byte, 8)}}.assemble(t), "in its self-test it "},
		"too big":                {huge, "it has more than 8388608 bytes"},
		"too big once unpacked":  {packedWith(t, huge), "it has more than 8388608 bytes"},
		"gzip that ends early":   {packedWith(t, plain)[:40], "it starts like gzip but cannot be unpacked"},
		"no manifest":            {guest{}.bare(), hostabi.ErrNoManifest.Error()},
		"a command":              {guest{bodies: map[string][]byte{"_start": code()}}.assemble(t), "built as a command"},
		"a start section":        {guest{bodies: map[string][]byte{initialize: code()}, start: true}.assemble(t), "it has a start section"},
		"unknown import":         {importing("wasi_snapshot_preview1", "sock_send", returning(i32, i32)), "it imports wasi_snapshot_preview1.sock_send, which the host does not offer; it offers retinue: log, metric; wasi_snapshot_preview1: proc_exit, "},
		"import of another type": {importing("retinue", "log", taking(i32, i32)), "it imports retinue.log as (i32, i32) → (), the host offers it as (i32, i32, i32) → ()"},
		"no memory":              {guest{without: []string{"memory"}}.assemble(t), "it lacks the export memory"},
		"too much memory":        {guest{memory: append([]byte{0}, uleb(1025)...)}.assemble(t), "it starts with 1025 pages of memory, more than the limit of 1024"},
		"too big a table":        {guest{table: 65537}.assemble(t), "it has a table of 65537 entries"},
		"no version":             {guest{without: []string{hostabi.ExportABI}}.assemble(t), "it lacks the export retinue_abi"},
		"no buffer":              {guest{without: []string{hostabi.ExportAlloc}}.assemble(t), "it lacks the export retinue_alloc"},
		"no error text":          {guest{without: []string{hostabi.ExportError}}.assemble(t), "it lacks the export retinue_error"},
		"no hook":                {guest{without: []string{hostabi.ExportAllocate}}.assemble(t), "its manifest names the hook allocate, but it lacks the export retinue_allocate"},
		"hook of another type":   {typed(hostabi.ExportRelease, returning(i64, i32)).assemble(t), "its export retinue_release is (i32) → i64, it must be (i32, i32) → i64"},
		"another version":        {with(hostabi.ExportABI, code(i32Const(2<<16))).assemble(t), "speaks version 2.0 of the contract, this host 1.0"},
		"loop at start":          {with(initialize, code(forever)).assemble(t), "in its self-test it was stopped while starting: its fuel is used up"},
		"settings refused":       {with(hostabi.ExportConfigure, code(i64Const(0))).assemble(t), "in its self-test it refused its settings: oops"},
		"garbage in self-test":   {with(hostabi.ExportAllocate, code(i64Const(packed(0, 8)))).assemble(t), "in its self-test it answered with what is no decision"},
		"trap in self-test":      {with(hostabi.ExportRelease, code(trap)).assemble(t), "in its self-test it trapped while deciding: unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, err := h.Load(t.Context(), "mine", test.wasm)
			if !errors.Is(err, ErrRefused) || !strings.HasPrefix(err.Error(), "loading policy mine: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
			if left := h.Modules(); len(left) != 0 {
				t.Errorf("it is kept: %+v", left)
			}
		})
	}
}

// strangers imports what nobody offers.
func strangers(t *testing.T, n int) []byte {
	var g guest
	for i := range n {
		g.imports = append(g.imports, hostFunction{module: "m", name: fmt.Sprint("f", i), signature: taking()})
	}
	return g.assemble(t)
}

func packedWith(t *testing.T, wasm []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(wasm); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A name that does not fit, that is taken by a shipped policy, or for which there is no room is refused.
func TestNamesAreChecked(t *testing.T) {
	h := newHost(t, func(c *Config) { c.Modules = 1 })
	plain := guest{}.assemble(t)
	for name, want := range map[string]string{
		"Mine": "is not made of", "a b": "is not made of", strings.Repeat("x", 64): "is not made of", "direct": "the name is that of a shipped policy",
	} {
		if _, err := h.Load(t.Context(), name, plain); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if _, err := h.Load(t.Context(), "mine", packedWith(t, plain)); err != nil {
		t.Fatal(err)
	}
	_, err := h.Load(t.Context(), "other", guest{custom: section(0, [][]byte{text("x")})}.assemble(t))
	if err == nil || !strings.Contains(err.Error(), "1 policies are loaded already") {
		t.Errorf("one too many: %v", err)
	}
	// The same bytes need no room, packed or not.
	if m, againErr := h.Load(t.Context(), "again", plain); againErr != nil || m.Name != "again" {
		t.Errorf("the same again: %+v, %v", m, againErr)
	}
	for n := range namesEach - 2 {
		if _, err = h.Load(t.Context(), fmt.Sprint("name", n), plain); err != nil {
			t.Error(err)
		}
	}
	if _, err = h.Load(t.Context(), "another", plain); err == nil || !strings.Contains(err.Error(), "4 names are taken already") {
		t.Errorf("a name too many: %v", err)
	}
	_, _, err = h.Bind(t.Context(), "shop/a", Binding{Policy: "their"})
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "there are again, direct, elastic, mine, name0, name1") {
		t.Errorf("an unknown policy: %v", err)
	}
}

// Loading ends when who asked goes away, and when the host ends.
func TestLoadingEnds(t *testing.T) {
	h := newHost(t)
	gone, leave := context.WithCancelCause(t.Context())
	h.library.turn <- struct{}{} // another module is being compiled
	waiting := make(chan error, 1)
	module := guest{}.assemble(t)
	go func() {
		_, err := h.Load(gone, "mine", module)
		waiting <- err
	}()
	leave(errors.New("the client went away"))
	if err := <-waiting; err == nil || !strings.Contains(err.Error(), "the client went away") {
		t.Errorf("error %v", err)
	}
	h.patience = time.Millisecond
	if err := h.Close(t.Context()); err != nil { // it does not wait for the other one
		t.Fatal(err)
	}
	<-h.library.turn
	h.library.work.Wait()
	if _, err := h.Load(t.Context(), "mine", guest{custom: section(0, [][]byte{text("x")})}.assemble(t)); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
	if answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(1)); answer.By != builtinDigest || len(answer.Decision.Creates) != 1 {
		t.Errorf("after the end: %+v", answer)
	}
}

// No bytes make the check do more than refuse them.
func FuzzCheck(f *testing.F) {
	f.Add(guest{}.assemble(f))
	f.Add(guest{imports: []hostFunction{host(f, "retinue", "log")}, table: 3, start: true, bodies: map[string][]byte{initialize: code()}}.assemble(f))
	f.Add([]byte(wasmMagic + coreVersion + "\x01\xff\xff\xff\xff\x0f"))
	cfg, all := DefaultConfig(), offers()
	f.Fuzz(func(t *testing.T, wasm []byte) {
		c, err := check(wasm, all, cfg)
		if err == nil && (c.digest == "" || c.manifest.Name == "") {
			t.Error("a module without a digest or a name passes")
		}
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("a refusal without a reason")
		}
	})
}
