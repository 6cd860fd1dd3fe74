package client

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is what an error of a call means for whoever made it.
type Kind uint8

// The kinds.
const (
	Failed      Kind = 0 // none of the others
	Unreachable Kind = 1 // the daemon does not answer, or is going away
	Late        Kind = 2 // it did not answer in time
	Canceled    Kind = 3 // the caller gave up
	NotFound    Kind = 4 // what was named is not there, or may not be seen
	Refused     Kind = 5 // the caller may not do that
	Invalid     Kind = 6 // the request is wrong
)

var kinds = map[codes.Code]Kind{
	codes.Unavailable: Unreachable, codes.DeadlineExceeded: Late, codes.Canceled: Canceled, codes.NotFound: NotFound,
	codes.PermissionDenied: Refused, codes.Unauthenticated: Refused, codes.InvalidArgument: Invalid,
}

// Explain returns what an error of a call means, and the daemon's sentence without the trappings of the protocol. It reports false for an error
// that did not come from a call.
func Explain(err error) (kind Kind, text string, ok bool) {
	var called interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &called) {
		return Failed, "", false
	}
	s := called.GRPCStatus() // its own message: that of an error wrapped around it would repeat the protocol's words
	return kinds[s.Code()], s.Message(), true
}
