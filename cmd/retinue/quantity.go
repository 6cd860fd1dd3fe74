package main

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// quantity is a number and what multiplies it: a power of ten or the sign of one, or that of a power of 1024.
var quantity = regexp.MustCompile(`^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i))?$`)

// tooMuch reports whether a quantity is more than clusters can count, who then silently take the most that they can: 1e999 of memory is a slip
// of the pen, and no executor would ever come. What is no quantity at all is left to those who know their grammar.
func tooMuch(text string) bool {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	n, err := strconv.ParseFloat(parts[1]+parts[2], 64)
	if err != nil && !math.IsInf(n, 0) {
		return false // no number
	}
	return math.Abs(n*multiplier(parts[3])) >= math.MaxInt64
}

// multiplier is what the sign of a power multiplies with.
func multiplier(sign string) float64 {
	const thousands = "num kMGTPE" // n is a billionth, the blank one
	if letter, binary := strings.CutSuffix(sign, "i"); binary {
		return math.Pow(1024, float64(strings.Index("KMGTPE", letter)+1))
	}
	if sign == "" {
		return 1
	}
	return math.Pow(1000, float64(strings.Index(thousands, sign)-strings.Index(thousands, " ")))
}
