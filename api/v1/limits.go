// Package apiv1 is the protocol between the daemon, its executors and its clients.
package apiv1

// MaxMessage is the most bytes of one message, either way. It is part of the protocol: both sides refuse what is larger.
const MaxMessage = 4 << 20
