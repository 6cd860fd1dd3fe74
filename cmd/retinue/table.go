package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// column is one column of a table of Ts.
type column[T any] struct {
	title string
	wide  bool // shown by -o wide only
	clock bool // changes by the passing of time alone
	cell  func(T) string
}

// table lays rows out in columns. It remembers the widths, so that rows which come later stand below those that came before.
type table[T any] struct {
	columns []column[T]
	widths  []int
	headed  bool
}

// newTable makes a table; without wide it has no wide columns.
func newTable[T any](columns []column[T], wide bool) *table[T] {
	t := &table[T]{}
	for _, c := range columns {
		if wide || !c.wide {
			t.columns = append(t.columns, c)
		}
	}
	t.widths = make([]int, len(t.columns))
	return t
}

// cells is a row as texts. What was chosen by others is cleaned, so that a name cannot draw over its neighbours.
func (t *table[T]) cells(row T) []string {
	out := make([]string, len(t.columns))
	for i, c := range t.columns {
		if out[i] = clean(c.cell(row)); out[i] == "" {
			out[i] = "-"
		}
	}
	return out
}

// lasting is a row without what the passing of time changes.
func (t *table[T]) lasting(row T) []string {
	cells := t.cells(row)
	for i, c := range t.columns {
		if c.clock {
			cells[i] = ""
		}
	}
	return cells
}

// lines are rows laid out, below the titles if these have not been shown.
func (t *table[T]) lines(rows ...T) string {
	var grid [][]string
	if !t.headed {
		t.headed = true
		titles := make([]string, len(t.columns))
		for i, c := range t.columns {
			titles[i] = c.title
		}
		grid = append(grid, titles)
	}
	for _, row := range rows {
		grid = append(grid, t.cells(row))
	}
	for _, cells := range grid {
		for i, cell := range cells {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range grid {
		b.WriteString(t.line(cells))
	}
	return b.String()
}

func (t *table[T]) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		const gap = 3
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+gap))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// age is how long ago something was, or nothing if it never was.
func age(at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return short(time.Since(at.AsTime()))
}

// short is a time in as few letters as tell it well: 470ms, 47s, 3m12s, 5h4m, 3d.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0: // the two clocks differ a little
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}
