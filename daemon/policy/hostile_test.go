package policy

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retinue-sched/retinue/hostabi"
)

// hostile is a module that does something instead of answering.
type hostile struct {
	guest guest
	cause cause
	fault string // is part of what the answer says
}

// hostiles returns one of each kind.
func hostiles(t *testing.T) map[string]hostile {
	good := hostabi.EncodeDecision(nil, hostabi.Decision{Creates: []hostabi.Create{{Profile: 1, Count: 1}}})
	huge := bytes.Repeat([]byte{1}, hostabi.MaxDecisionSize)
	unknown := slices.Clone(good)
	binary.LittleEndian.PutUint32(unknown, 0xdeadbeef)
	failing := func(at, n int) guest {
		g := deciding(i64Const(0), giveBack)
		g.bodies[hostabi.ExportError] = code(i64Const(packed(at, n)))
		return g
	}
	saying := func(what string) guest {
		g := failing(answerAt, len(what))
		g.data = map[uint32][]byte{answerAt: []byte(what)}
		return g
	}
	return map[string]hostile{
		"unreachable":             {deciding(trap), causeTrap, "trapped while deciding: unreachable"},
		"division by zero":        {deciding(i32Const(1), i32Const(0), []byte{0x6d}, drop), causeTrap, "integer divide by zero"},
		"load outside of memory":  {deciding(i32Const(-8), []byte{0x28, 2, 0}, drop), causeTrap, "out of bounds memory access"},
		"endless loop":            {deciding(forever), causeFuel, "was stopped while deciding: its fuel is used up"},
		"endless loop in time":    {deciding(forever), causeDeadline, "was stopped while deciding: its time is up"},
		"endless random bytes":    {calling(t, "random_get", i32Const(0), i32Const(7*pageSize)), causeFuel, "its fuel is used up"},
		"endless printing":        {printing(t), causeFuel, "its fuel is used up"},
		"endless recursion":       {recursing(), causeDepth, "was stopped while deciding: its calls are nested too deep"},
		"memory bomb":             {deciding(untilFull()), causeTrap, "unreachable"},
		"exit":                    {exiting(t, 3), causeExit, "ended itself with code 3"},
		"exit with success":       {exiting(t, 0), causeExit, "ended itself with code 0"},
		"pointer past memory":     {deciding(i64Const(packed(1<<31, 16)), giveBack), causeMemory, "outside of its memory"},
		"length past memory":      {deciding(i64Const(packed(8*pageSize-8, 16)), giveBack), causeMemory, "outside of its memory"},
		"pointer and length wrap": {deciding(i64Const(-1<<32|16), giveBack), causeMemory, "outside of its memory"},
		"huge length":             {deciding(i64Const(packed(answerAt, -1)), giveBack), causeOutput, "answered with 4294967295 bytes, more than the limit"},
		"more than the limit":     {deciding(i64Const(packed(answerAt, hostabi.MaxDecisionSize+1)), giveBack), causeOutput, "more than the limit"},
		"no bytes":                {deciding(i64Const(packed(answerAt, 0)), giveBack), causeDecision, "answered with what is no decision"},
		"garbage":                 {answering(huge), causeDecision, "answered with what is no decision"},
		"cut short":               {answering(good[:len(good)-9]), causeDecision, "answered with what is no decision"},
		"wrong magic":             {answering(unknown), causeDecision, "answered with what is no decision"},
		"an error":                {saying("there is no such profile"), causeError, "could not decide: there is no such profile"},
		"an error with a stack":   {saying("panic: boom\ngoroutine 1:\n"), causeError, "could not decide: panic: boom"},
		"an error of junk":        {saying("red\x1b[31m\xff\xfe"), causeError, "could not decide: red�[31m"},
		"an error without text":   {failing(0, 0), causeError, "it does not say why"},
		"an error nowhere":        {failing(1<<31-1, 1<<20), causeMemory, "outside of its memory"},
		"a trap in the error":     {trappingInError(), causeTrap, "trapped while saying what is wrong"},
		"no room":                 {allocating(i32Const(0)), causeMemory, "has no room for"},
		"a buffer past memory":    {allocating(i32Const(-4)), causeMemory, "outside of its memory"},
	}
}

// Whatever a module does instead of answering, the built-in policy answers that very question, the answer says what happened, and the next
// question is answered by the module again, from a fresh instance.
func TestEveryFaultIsAnsweredAnyway(t *testing.T) {
	for name, test := range hostiles(t) {
		t.Run(name, func(t *testing.T) {
			h, faults := newCountingHost(t, func(c *Config) {
				if test.cause != causeDeadline {
					c.Deadline = time.Minute // so that no slow machine makes another fault of it
				} else {
					c.Fuel = 1 << 60
				}
			})
			bind(t, h, "shop/a", test.guest.assemble(t))
			began := time.Now()
			answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big())
			if took := time.Since(began); took > h.cfg.Deadline+5*time.Second {
				t.Errorf("the answer took %v, the deadline is %v", took, h.cfg.Deadline)
			}
			if !strings.HasPrefix(answer.Fault, "policy hostile ") || !strings.Contains(answer.Fault, test.fault) || strings.ContainsAny(answer.Fault, "\n\x1b") {
				t.Errorf("fault %q, want %q in it", answer.Fault, test.fault)
			}
			want := h.Builtin(t.Context(), hostabi.HookAllocate, big())
			if diff := cmp.Diff(want.Decision, answer.Decision); diff != "" || answer.By != builtinDigest || len(want.Decision.Creates) != 1 {
				t.Errorf("answered by %s, with (-want +got)\n%s", answer.By, diff)
			}
			if n := faults(test.cause); n != 1 {
				t.Errorf("%d faults of cause %s counted, want 1", n, test.cause)
			}
			again := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(1))
			if again.Fault != "" || again.Policy != "hostile" {
				t.Errorf("the next question: %+v, want it answered by the module", again)
			}
		})
	}
}

// calling calls a function of WASI again and again.
func calling(t *testing.T, name string, params ...[]byte) guest {
	g := deciding(slices.Concat([]byte{0x03, 0x40}, bytes.Join(params, nil), callTo(0), drop, []byte{0x0c, 0, 0x0b}))
	g.imports = []hostFunction{host(t, wasiModule, name)}
	return g
}

// printing prints many short lines with each call, again and again.
func printing(t *testing.T) guest {
	const texts, lists, lines = 3 * pageSize, 4 * pageSize, 2048
	g := calling(t, "fd_write", i32Const(1), i32Const(lists), i32Const(lines), i32Const(scratchAt))
	var list []byte
	for range lines {
		list = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(list, texts), 16<<10)
	}
	g.data = map[uint32][]byte{lists: list, texts: bytes.Repeat([]byte("a\n"), 8<<10)}
	return g
}

// recursing calls itself until there is no more stack.
func recursing() guest {
	g := deciding(localGet(0), localGet(1), callTo(2), drop) // the third export by name is retinue_allocate
	return g
}

func exiting(t *testing.T, status int32) guest {
	g := deciding(i32Const(status), callTo(0))
	g.imports = []hostFunction{host(t, wasiModule, "proc_exit")}
	return g
}

func trappingInError() guest {
	g := deciding(i64Const(0), giveBack)
	g.bodies[hostabi.ExportError] = code(trap)
	return g
}

// allocating returns a guest that gives a wrong buffer for a big view.
func allocating(where []byte) guest {
	return guest{bodies: map[string][]byte{hostabi.ExportAlloc: code(whenBig(where, giveBack), i32Const(inputAt))}}
}

// A hook that a module does not have is the built-in policy's, and no fault.
func TestAbsentHookIsNoFault(t *testing.T) {
	h, faults := newCountingHost(t)
	bind(t, h, "shop/a", guest{hooks: []string{"release"}, without: []string{hostabi.ExportAllocate}}.assemble(t))
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(3))
	if answer.Fault != "" || answer.By != builtinDigest || len(answer.Decision.Creates) != 1 {
		t.Errorf("allocate: %+v", answer)
	}
	if answer = h.Ask(t.Context(), "shop/a", hostabi.HookRelease, wanting(3)); answer.Policy != "hostile" {
		t.Errorf("release: %+v", answer)
	}
	if n := faults(""); n != 0 {
		t.Errorf("%d faults counted", n)
	}
}

// Before the default policy is there the built-in one answers, which is no fault; once it is clear that it will not come, it is.
func TestDefaultThatIsNotThere(t *testing.T) {
	h, faults := newCountingHost(t, func(c *Config) { c.Default.Policy = "nowhere" })
	if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "nowhere is being compiled") {
		t.Errorf("ready: %v", err)
	}
	if answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(3)); answer.Fault != "" || answer.By != builtinDigest {
		t.Errorf("early: %+v", answer)
	}
	h.setDefault(t.Context())
	if err := h.Ready(); err == nil || !strings.Contains(err.Error(), `policy "nowhere": no such policy`) {
		t.Errorf("ready: %v", err)
	}
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, wanting(3))
	if !strings.Contains(answer.Fault, "nowhere") || answer.By != builtinDigest || len(answer.Decision.Creates) != 1 || faults(causeMissing) != 1 {
		t.Errorf("late: %+v", answer)
	}
}

// What a module says reaches the log, and a flood does not.
func TestLogFloodIsCut(t *testing.T) {
	say := slices.Concat(i32Const(levelWarn), i32Const(answerAt), i32Const(19), callTo(0))
	flood := deciding(repeated(2_000, say))
	flood.imports = []hostFunction{host(t, "retinue", "log")}
	flood.data = map[uint32][]byte{answerAt: []byte("fewer\x1b than wanted\x00")}
	records := &tape{}
	h := newHostWith(t, records, func(c *Config) { c.Deadline = time.Minute })
	bind(t, h, "shop/a", flood.assemble(t))
	for range 20 {
		if answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big()); answer.Fault != "" {
			t.Fatal(answer.Fault)
		}
	}
	said := records.of("policy said")
	if len(said) < maxLines || len(said) > maxLines+20*linesPerSecond {
		t.Errorf("%d lines of 40,000 were logged, want about %d", len(said), maxLines)
	}
	if len(said) > 0 && (said[0].level != slog.LevelWarn || said[0].text != "fewer� than wanted�") {
		t.Errorf("logged %+v", said[0])
	}
}

// What a module prints before it dies is in the answer, for people.
func TestLastWords(t *testing.T) {
	g := deciding(i32Const(2), i32Const(scratchAt), i32Const(1), i32Const(scratchAt+16), callTo(0), drop, trap)
	g.imports = []hostFunction{host(t, wasiModule, "fd_write")}
	vector := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, answerAt), 21)
	g.data = map[uint32][]byte{scratchAt: vector, answerAt: []byte("fatal: index 3 of 2\n\n")}
	h := newHost(t)
	bind(t, h, "shop/a", g.assemble(t))
	answer := h.Ask(t.Context(), "shop/a", hostabi.HookAllocate, big())
	if !strings.Contains(answer.Fault, "trapped while deciding: unreachable (it printed: fatal: index 3 of 2)") {
		t.Errorf("fault %q", answer.Fault)
	}
}
