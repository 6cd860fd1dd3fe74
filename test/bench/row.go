package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// unit is what a value counts.
type unit string

// The units.
const (
	microseconds unit = "µs"
	milliseconds unit = "ms"
	times        unit = "x"
	percent      unit = "%"
	perSecond    unit = "/s"
	count        unit = ""
)

// row is one number and what is asked of it.
type row struct {
	name  string
	value float64
	unit  unit
	held  bool    // something is asked of it
	most  float64 // the most that is accepted, if held
	note  string  // how it came about, where the name does not say
}

// measured is a number of which nothing is asked.
func measured(name string, value float64, u unit) row { return row{name: name, value: value, unit: u} }

// took is a duration of which nothing is asked.
func took(name string, d time.Duration, u unit) row {
	of := time.Microsecond
	if u == milliseconds {
		of = time.Millisecond
	}
	return measured(name, float64(d)/float64(of), u)
}

// atMost asks something of the number.
func (r row) atMost(most float64) row {
	r.held, r.most = true, most
	return r
}

func (r row) noted(format string, args ...any) row {
	r.note = fmt.Sprintf(format, args...)
	return r
}

// verdict is ok or short, or nothing where nothing is asked.
func (r row) verdict() string {
	switch {
	case !r.held:
		return "-"
	case r.value <= r.most:
		return "ok"
	}
	return "short"
}

func (r row) floor() string {
	if !r.held {
		return "-"
	}
	return "<= " + quantity(r.most, r.unit)
}

// quantity writes a value with three digits that matter.
func quantity(value float64, u unit) string {
	digits := 0
	for limit := 100.0; digits < 3 && value < limit && value != float64(int64(value)); limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if u == count || u == perSecond || u == times || u == percent {
		return text + string(u)
	}
	return text + " " + string(u)
}

const layout = "%-70s %10s %12s  %-5s  %s\n"

func printHead(out io.Writer) { fmt.Fprintf(out, layout, "what", "value", "floor", "", "") }

func printRows(out io.Writer, bench string, rows []row) {
	for _, r := range rows {
		fmt.Fprintf(out, layout, bench+": "+r.name, quantity(r.value, r.unit), r.floor(), r.verdict(), r.note)
	}
}

// samples are durations of the same thing.
type samples []time.Duration

// quantile returns the sample below which a part of all is. It sorts them.
func (s samples) quantile(part float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[min(int(part*float64(len(s))), len(s)-1)]
}

func (s samples) median() time.Duration { return s.quantile(0.5) }
