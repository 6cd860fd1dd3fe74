//go:build !linux

package policy

import "errors"

// mapping is for systems that can drop the changes to a private mapping; the others copy.
type mapping struct{}

type frozen struct{}

func (*frozen) close() error { return nil }

var errNoMapping = errors.New("this system cannot put back memory by page")

func newMapping(uint64) (*mapping, error) { return nil, errNoMapping }

func (*mapping) Reallocate(uint64) []byte    { return nil }
func (*mapping) Free()                       {}
func (*mapping) freeze(int) (*frozen, error) { return nil, errNoMapping }
func (*mapping) assume(*frozen) error        { return errNoMapping }
func (*mapping) expect(uint64, uint64)       {}
func (*mapping) restore(*frozen) error       { return errNoMapping }
