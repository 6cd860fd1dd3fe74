package wasm

// Limits bound what a module may be. Compile time grows with the square of what one function holds, hence the limits on a function.
type Limits struct {
	Size      int // bytes of the module, all custom sections counted
	Functions int // its own
	Body      int // bytes of one function
	Nesting   int // blocks inside of each other
	Locals    int // of one function, parameters counted
	Values    int // parameters of a type, and results of one

	Targets         int // of one br_table
	FunctionTargets int // of all br_tables of a function
	ModuleTargets   int // of all of them
	FunctionBlocks  int // blocks, loops and ifs of a function
	ModuleBlocks    int // of all functions
	FunctionLoops   int // of them, loops
	FunctionMoves   int // values that the calls and branches of a function carry
	ModuleMoves     int // of all functions
	FunctionJoins   int // see Shape.FunctionJoins
	ModuleJoins     int // of all functions
	FunctionEdges   int // see Shape.FunctionEdges
	ModuleEdges     int // of all functions

	MemoryPages  uint32 // that its memory may start with
	TableEntries uint32 // that its table may start with
	Entries      int    // types, imports, exports, globals, and custom sections: of each
	Segments     int    // of data, and of elements
}

// DefaultLimits are far above what the supported compilers make: a big Go module takes half of most of them, or less.
func DefaultLimits() Limits {
	return Limits{
		Size:            8 << 20,
		Functions:       20_000,
		Body:            128 << 10,
		Nesting:         1_024,
		Locals:          1_000,
		Values:          128,
		Targets:         2_048,
		FunctionTargets: 4_096,
		ModuleTargets:   262_144,
		FunctionBlocks:  4_096,
		ModuleBlocks:    262_144,
		FunctionLoops:   1_024,
		FunctionMoves:   131_072,
		ModuleMoves:     4 << 20,
		FunctionJoins:   65_536,
		ModuleJoins:     4 << 20,
		FunctionEdges:   262_144,
		ModuleEdges:     8 << 20,
		MemoryPages:     1_024,
		TableEntries:    64 << 10,
		Entries:         20_000,
		Segments:        262_144,
	}
}

// Shape is how big a module is, in the figures that Limits bound.
type Shape struct {
	Body            int // bytes of the biggest function
	Nesting         int
	Locals          int
	Targets         int
	FunctionTargets int
	ModuleTargets   int
	FunctionBlocks  int
	ModuleBlocks    int
	FunctionLoops   int
	FunctionMoves   int
	ModuleMoves     int
	// FunctionJoins counts where values may come together: all local variables, at every block and if, and at every loop as often as loops
	// are inside of each other there. A compiler looks at each, and again for each: a loop in a loop, 60 deep, with 990 locals takes it
	// longer than anybody waits.
	FunctionJoins int
	ModuleJoins   int
	// FunctionEdges counts what may come to a block with a branch: all local variables, with every branch. 26,000 branches in a function with 900
	// locals keep a compiler busy for 12 seconds.
	FunctionEdges int
	ModuleEdges   int
	Instructions  int // of all functions
}
