// Package hostabi is the contract between the daemon and a policy module: the
// numbers, the block form that views and decisions travel in, and the manifest
// that a module carries. README.md in this folder is the contract in words.
//
// It promises that
//
//   - the same View encodes to the same bytes, on any machine, whatever buffers
//     it is given;
//   - nothing that a module answers is copied or believed before its bounds,
//     sizes, counts and text have been checked: DecodeDecision and ParseBlock
//     return an error for bad bytes and never panic;
//   - a number that was once published keeps its meaning, and readers skip
//     tables and columns that they do not know.
//
// It is compiled into modules, too, so what a module reaches needs neither fmt
// nor encoding/json: they would double the module's size.
package hostabi

import "strconv"

// The version of the contract. Readers accept every minor version of their
// major one.
const (
	ABIMajor = 1
	ABIMinor = 0
)

// ABIVersion is what a module's retinue_abi export returns.
const ABIVersion = ABIMajor<<16 | ABIMinor

// What a block may hold, in bytes unless another unit is in the name.
const (
	// MaxDecisionSize bounds a whole decision.
	MaxDecisionSize = 256 << 10
	// MaxViewSize bounds a whole view; it has room for about 300,000 executors.
	MaxViewSize = 64 << 20
	// MaxStateSize bounds the state that a policy carries from call to call.
	MaxStateSize = 64 << 10
	// MaxNoteSize bounds the note of a decision.
	MaxNoteSize = 1 << 10
	// MaxTextSize bounds each other text in a decision: a reason, a zone, a node.
	MaxTextSize = 1 << 10
	// MaxErrorSize bounds the text behind retinue_error; the host cuts the rest off.
	MaxErrorSize = 4 << 10
	// MaxSettingsSize bounds the settings handed to retinue_configure.
	MaxSettingsSize = 64 << 10
	// MaxManifestSize bounds the manifest section.
	MaxManifestSize = 64 << 10
	// MaxRows bounds the rows of one table.
	MaxRows = 1 << 20
	// MaxTables bounds the tables of one block.
	MaxTables = 32
	// MaxColumns bounds the columns of one block, all tables together.
	MaxColumns = 512
)

// None stands in a u32 bound for "no bound".
const None = 1<<32 - 1

// Hook is the question that a module is asked.
type Hook uint32

// The hooks. A block whose hook is 0 is an answer.
const (
	HookAllocate Hook = 1 // how many executors of which profile to ask for
	HookRelease  Hook = 2 // which executors to let go
)

// String returns the hook's name as the manifest spells it.
func (h Hook) String() string {
	switch h {
	case 0:
		return "answer"
	case HookAllocate:
		return "allocate"
	case HookRelease:
		return "release"
	default:
		return "hook " + strconv.FormatUint(uint64(h), 10)
	}
}

// BufferKind says which buffer a host asks retinue_alloc for.
type BufferKind uint32

// The buffers. Each stays valid until the next call with the same kind.
const (
	BufferInput    BufferKind = 1 // views
	BufferSettings BufferKind = 2 // settings
)

// The names that a module exports and the section that it carries.
const (
	ExportABI       = "retinue_abi"
	ExportAlloc     = "retinue_alloc"
	ExportConfigure = "retinue_configure"
	ExportAllocate  = "retinue_allocate"
	ExportRelease   = "retinue_release"
	ExportError     = "retinue_error"

	ManifestSection = "retinue.policy"
)
