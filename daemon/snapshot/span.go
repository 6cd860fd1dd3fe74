package snapshot

import "time"

// Rounded is a span as people say it: to the second from ten seconds on, to a tenth of a second from one second on, and else to the millisecond.
// A deadline fires a moment after it is due, and "nothing was heard for 30.000000001s" makes people look for a reason.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Millisecond)
}
