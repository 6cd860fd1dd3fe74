package wasm

import (
	"errors"
	"fmt"
)

// judge goes through the bodies of functions.
type judge struct {
	*Module
	limits Limits

	// Of the function at hand.
	index  int // counting the imported ones
	at     *Function
	walk   *Walk
	locals uint64
	frames []frame
	blocks int
	labels int
	moves  int
	loops  int // all of them
	inside int // loops that are open
	joins  int
	edges  int
}

// frame is a block that is open.
type frame struct {
	op    Opcode
	carry int // values that a branch to it carries
	ends  int // values that it ends with
}

// function judges one body.
func (j *judge) function(own int) error {
	f := &j.Functions[own]
	*j = judge{Module: j.Module, limits: j.limits, at: f, index: len(j.Imports) + own, frames: j.frames[:0]}
	size := len(f.Code)
	j.Shape.Body = max(j.Shape.Body, size)
	if size > j.limits.Body {
		return fmt.Errorf("its %s at offset 0x%x has a body of %d bytes, more than the limit of %d: split it", j.describe(j.index), f.Offset, size, j.limits.Body)
	}
	if err := j.countLocals(); err != nil {
		return err
	}
	results := len(j.Types[f.Type].Results)
	j.frames = append(j.frames, frame{op: OpCall, carry: results, ends: results})
	j.walk = WalkOver(f.Code)
	for j.walk.Next() {
		j.Shape.Instructions++
		if len(j.frames) == 0 {
			return j.wrong(errors.New("there is code after its end"))
		}
		if err := j.instruction(); err != nil {
			return err
		}
	}
	switch {
	case j.walk.Err() != nil:
		if reason := refusal(j.walk.Op); reason != "" {
			return j.refuse(reason)
		}
		return j.wrong(j.walk.Err())
	case len(j.frames) > 0:
		return j.wrong(errors.New("its code does not end"))
	}
	return j.total()
}

// total holds what the function adds to the module's sums to their limits.
func (j *judge) total() error {
	s := &j.Shape
	s.FunctionBlocks, s.FunctionTargets = max(s.FunctionBlocks, j.blocks), max(s.FunctionTargets, j.labels)
	s.FunctionMoves, s.FunctionLoops, s.FunctionJoins = max(s.FunctionMoves, j.moves), max(s.FunctionLoops, j.loops), max(s.FunctionJoins, j.joins)
	s.FunctionEdges = max(s.FunctionEdges, j.edges)
	s.ModuleEdges += j.edges
	s.ModuleJoins += j.joins
	s.ModuleBlocks += j.blocks
	s.ModuleTargets += j.labels
	s.ModuleMoves += j.moves
	for _, sum := range []struct {
		figure, limit int
		what          string
	}{
		{s.ModuleBlocks, j.limits.ModuleBlocks, "blocks"},
		{s.ModuleTargets, j.limits.ModuleTargets, "targets of br_table"},
		{s.ModuleMoves, j.limits.ModuleMoves, "values that calls and branches carry"},
		{s.ModuleJoins, j.limits.ModuleJoins, joins},
		{s.ModuleEdges, j.limits.ModuleEdges, edges},
	} {
		if sum.figure > sum.limit {
			return fmt.Errorf("its functions up to %s have %d %s, more than the limit of %d: leave out what is not used",
				j.describe(j.index), sum.figure, sum.what, sum.limit)
		}
	}
	return nil
}

func (j *judge) countLocals() error {
	j.locals = uint64(len(j.Types[j.at.Type].Params))
	for _, run := range j.at.Locals {
		j.locals += uint64(run.Count)
	}
	if j.locals > uint64(j.limits.Locals) {
		return fmt.Errorf("its %s at offset 0x%x has %d locals, more than the limit of %d: split it", j.describe(j.index), j.at.Offset, j.locals, j.limits.Locals)
	}
	j.Shape.Locals = max(j.Shape.Locals, int(j.locals))
	return nil
}

// instruction judges the instruction at hand.
func (j *judge) instruction() error {
	w := j.walk
	if reason := refusal(w.Op); reason != "" {
		return j.refuse(reason)
	}
	switch immediateOf(w.Op) {
	case blockType:
		return j.open()
	case label, labels:
		return j.branch()
	case function:
		return j.callee()
	case typeTable:
		return j.indirect()
	case local:
		return j.within("local", uint64(w.Index), j.locals)
	case global:
		return j.within("global", uint64(w.Index), uint64(len(j.Globals)))
	case table:
		return j.within("table", uint64(w.Index), uint64(len(j.Tables)))
	case memoryArg, memoryLane, memory, memories:
		return j.within("memory", 0, uint64(len(j.Memories)))
	case dataMemory:
		return j.initialize()
	default:
	}
	switch w.Op {
	case OpElse:
		return j.otherwise()
	case OpEnd:
		j.close()
	case OpReturn:
		return j.move(j.frames[0].carry)
	default:
	}
	return nil
}

// open opens a block.
func (j *judge) open() error {
	f := frame{op: j.walk.Op}
	var params int
	switch b := j.walk.Block; {
	case b >= 0:
		if err := j.within("type", uint64(b), uint64(len(j.Types))); err != nil {
			return err
		}
		params, f.ends = len(j.Types[b].Params), len(j.Types[b].Results)
	case b != NoValues:
		f.ends = 1
	}
	if f.carry = f.ends; f.op == OpLoop {
		f.carry = params
	}
	j.blocks++
	j.Shape.Nesting = max(j.Shape.Nesting, len(j.frames))
	switch {
	case len(j.frames) > j.limits.Nesting:
		return j.tooMuch("blocks inside of each other", len(j.frames), j.limits.Nesting)
	case j.blocks > j.limits.FunctionBlocks:
		return j.tooMuch("blocks", j.blocks, j.limits.FunctionBlocks)
	}
	j.frames = append(j.frames, f)
	if err := j.join(f.op); err != nil {
		return err
	}
	return j.move(params + f.ends)
}

// joins is what FunctionJoins counts, for people.
const joins = "values that come together at blocks (locals times blocks, times depth for loops)"

// join counts what comes together at a block.
func (j *judge) join(op Opcode) error {
	times := 1
	if op == OpLoop {
		j.loops++
		j.inside++
		times = j.inside
	}
	j.joins += int(j.locals) * times
	switch {
	case j.loops > j.limits.FunctionLoops:
		return j.tooMuch("loops", j.loops, j.limits.FunctionLoops)
	case j.joins > j.limits.FunctionJoins:
		return j.tooMuch(joins, j.joins, j.limits.FunctionJoins)
	}
	return nil
}

func (j *judge) close() {
	top := len(j.frames) - 1
	if j.frames[top].op == OpLoop {
		j.inside--
	}
	j.frames = j.frames[:top]
}

func (j *judge) otherwise() error {
	top := &j.frames[len(j.frames)-1]
	if top.op != OpIf {
		return j.wrong(errors.New("an else has no if"))
	}
	top.op = OpElse
	return j.move(top.ends)
}

// branch judges a br, br_if or br_table.
func (j *judge) branch() error {
	targets := j.walk.Labels
	if j.walk.Op == OpBrTable {
		n := len(targets) - 1
		j.labels += n
		j.Shape.Targets = max(j.Shape.Targets, n)
		switch {
		case n > j.limits.Targets:
			return j.tooMuch("targets in one br_table", n, j.limits.Targets)
		case j.labels > j.limits.FunctionTargets:
			return j.tooMuch("targets of br_table", j.labels, j.limits.FunctionTargets)
		}
	} else {
		targets = []uint32{j.walk.Index}
	}
	carried := 0
	for _, label := range targets {
		if err := j.within("block", uint64(label), uint64(len(j.frames))); err != nil {
			return err
		}
		carried += j.frames[len(j.frames)-1-int(label)].carry
	}
	if j.edges += int(j.locals) * len(targets); j.edges > j.limits.FunctionEdges {
		return j.tooMuch(edges, j.edges, j.limits.FunctionEdges)
	}
	return j.move(carried)
}

// edges is what FunctionEdges counts, for people.
const edges = "values that branches may bring (locals times targets)"

func (j *judge) callee() error {
	if err := j.within("function", uint64(j.walk.Index), uint64(j.functionCount())); err != nil {
		return err
	}
	if j.walk.Op != OpCall { // a reference to it
		return nil
	}
	return j.call(j.TypeOf(j.walk.Index))
}

func (j *judge) indirect() error {
	if err := j.within("table", uint64(j.walk.table), uint64(len(j.Tables))); err != nil {
		return err
	}
	if err := j.within("type", uint64(j.walk.Index), uint64(len(j.Types))); err != nil {
		return err
	}
	return j.call(j.Types[j.walk.Index])
}

func (j *judge) call(s Signature) error {
	j.at.Calls = true
	return j.move(len(s.Params) + len(s.Results))
}

func (j *judge) initialize() error {
	if !j.DataCount {
		return j.wrong(errors.New("a data segment is named, but how many there are is not said before the code"))
	}
	if err := j.within("data segment", uint64(j.walk.Index), uint64(len(j.Data))); err != nil {
		return err
	}
	return j.within("memory", 0, uint64(len(j.Memories)))
}

// move counts values that are carried. Each is an instruction, or a choice, to who compiles them.
func (j *judge) move(values int) error {
	j.moves += values
	if j.moves > j.limits.FunctionMoves {
		return j.tooMuch("values that calls and branches carry", j.moves, j.limits.FunctionMoves)
	}
	return nil
}

func (j *judge) within(what string, index, count uint64) error {
	if index < count {
		return nil
	}
	return j.wrong(fmt.Errorf("the %s %d is named, there are %d", what, index, count))
}

func (j *judge) tooMuch(what string, figure, limit int) error {
	return fmt.Errorf("its %s has %d %s at offset 0x%x, more than the limit of %d: split it", j.describe(j.index), figure, what, j.at.Offset+j.walk.At, limit)
}

func (j *judge) refuse(reason string) error {
	return fmt.Errorf("its %s at offset 0x%x %s", j.describe(j.index), j.at.Offset+j.walk.At, reason)
}

func (j *judge) wrong(err error) error {
	return fmt.Errorf("it is damaged: %s at offset 0x%x: %w", j.describe(j.index), j.at.Offset+j.walk.At, err)
}
