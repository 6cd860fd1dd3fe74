package hostabi

// Decision is what a module answered, decoded and checked for shape. Whether it may be carried out is the
// guard's business.
type Decision struct {
	Creates  []Create
	Releases []Release
	// NextCallMS is after how long the policy wants to be asked again at the latest; 0 is no wish.
	NextCallMS int64
	// StateVersion says how to read State; 0 leaves the state what it was.
	StateVersion uint32
	State        []byte // handed back in the next view; at most MaxStateSize
	Note         string // for people; at most MaxNoteSize
}

// Create asks for executors of a profile. Zone, CapacityType and Node are hints and may be empty.
type Create struct {
	Profile      uint32
	Count        uint32
	Zone         string
	CapacityType string
	Node         string
	Reason       string
}

// Release lets an executor go.
type Release struct {
	Executor uint64
	Mode     ReleaseMode
	Reason   string
}

// resultRow is the row of table result.
type resultRow struct {
	NextCallMS   int64
	StateVersion uint32
	State        []byte
	Note         string
}

// EncodeDecision appends d as a block to dst and returns the longer slice. It writes what it is given, also
// what DecodeDecision would refuse.
func EncodeDecision(dst []byte, d Decision) []byte {
	var e DecisionEncoder
	return e.Encode(dst, d)
}

// DecisionEncoder encodes one decision after another and allocates nothing once it has grown. Its zero value is
// ready.
type DecisionEncoder struct {
	encoder encoder
	result  [1]resultRow
}

// Encode does what EncodeDecision does.
func (e *DecisionEncoder) Encode(dst []byte, d Decision) []byte {
	e.result[0] = resultRow{d.NextCallMS, d.StateVersion, d.State, d.Note}
	var sources [3]source
	n := 0
	if len(d.Creates) > 0 {
		sources[n] = rowsOf(TableCreate, d.Creates)
		n++
	}
	if len(d.Releases) > 0 {
		sources[n] = rowsOf(TableRelease, d.Releases)
		n++
	}
	sources[n] = rowsOf(TableResult, e.result[:])
	return e.encoder.append(dst, 0, sources[:n+1])
}
