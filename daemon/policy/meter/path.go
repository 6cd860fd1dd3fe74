package meter

import "github.com/retinue-sched/retinue/daemon/policy/wasm"

// longest is the most weight of instructions that a tick pays for: on no way through a function is there more between two checks.
const longest = 256

// path follows the ways forward through a function, and knows the heaviest one from the last check to where it is.
type path struct {
	labels []target
	since  int // the last check on the heaviest way here, in weight; dead if no way leads here
}

const dead = -1

// target is a block that is open.
type target struct {
	op    wasm.Opcode
	worst int // of the branches to its end
	start int // where its condition was looked at, for an if
}

func (p *path) alive() bool { return p.since != dead }

// full reports whether an instruction of some weight needs a check before it. An if needs one early: a check in one of its branches would
// do nothing for the other, and every if after it would need one again.
func (p *path) full(op wasm.Opcode, weight int) bool {
	switch op {
	case wasm.OpLoop: // it has its own
		return false
	case wasm.OpIf:
		return p.since+weight > longest/2
	default:
		return p.alive() && p.since+weight > longest
	}
}

// paid says that there is a check here.
func (p *path) paid() { p.since = 0 }

func (p *path) open(op wasm.Opcode) {
	p.labels = append(p.labels, target{op: op, worst: dead, start: p.since})
}

// step goes over an instruction.
func (p *path) step(walk *wasm.Walk, weight int) {
	if p.alive() {
		p.since += weight
	}
	switch walk.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		p.open(walk.Op)
	case wasm.OpElse:
		top := &p.labels[len(p.labels)-1]
		top.worst = max(top.worst, p.since)
		top.op, p.since = wasm.OpElse, top.start
	case wasm.OpEnd:
		p.end()
	case wasm.OpBrIf:
		p.branch(walk.Index)
	case wasm.OpBr:
		p.branch(walk.Index)
		p.since = dead
	case wasm.OpBrTable:
		for _, label := range walk.Labels {
			p.branch(label)
		}
		p.since = dead
	case wasm.OpUnreachable, wasm.OpReturn:
		p.since = dead
	default:
	}
}

// branch counts a way to a block's end. One to a loop's head needs nothing: there is a check.
func (p *path) branch(label uint32) {
	if to := &p.labels[len(p.labels)-1-int(label)]; to.op != wasm.OpLoop {
		to.worst = max(to.worst, p.since)
	}
}

func (p *path) end() {
	top := p.labels[len(p.labels)-1]
	p.labels = p.labels[:len(p.labels)-1]
	p.since = max(p.since, top.worst)
	if top.op == wasm.OpIf { // without an else, not taken
		p.since = max(p.since, top.start)
	}
}

// The weights of instructions that take longer than 4 ns at worst, as measured on a machine of 2.5 GHz or so. A thousand ticks of the
// worst code that there is, loads that each wait for the one before and miss all caches (170 ns), are 3 ms with them.
const (
	light        = 1
	weightCall   = 4
	weightTable  = 8  // a branch that no processor foresees
	weightAccess = 16 // to memory, or to the table
	weightHost   = 64 // a call that may be one to the host
)

// weight returns how much of what a tick pays for an instruction takes.
func (w *writer) weight(walk *wasm.Walk) int {
	switch op := walk.Op; {
	case op == wasm.OpCall && int(walk.Index) >= len(w.Imports):
		return weightCall
	case op == wasm.OpCall, op == wasm.OpCallIndirect:
		return weightHost
	case op == wasm.OpBrTable:
		return weightTable
	case wasm.Accesses(op):
		return weightAccess
	}
	return light
}

// loopsAtOnce reports whether a function does next to nothing before a loop, whose check is enough then: so begin nearly all functions
// that are made of Go.
func loopsAtOnce(plain []byte) bool {
	walk := wasm.WalkOver(plain)
	for range longest / 8 {
		if !walk.Next() {
			return false
		}
		switch walk.Op {
		case wasm.OpLoop:
			return true
		case wasm.OpBlock, wasm.OpLocalGet, wasm.OpLocalSet, wasm.OpLocalTee, wasm.OpGlobalGet, wasm.OpGlobalSet, wasm.OpI32Const, wasm.OpI64Const:
		default:
			return false
		}
	}
	return false
}
