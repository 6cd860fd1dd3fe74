package main

import (
	"fmt"
	"strings"
)

// count is a number of things in words: 1 task, 2 tasks, 2 retries.
func count[N int | uint32 | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, plural(one))
}

// plural is an English word for more than one of what a word names.
func plural(one string) string {
	if stem, ok := strings.CutSuffix(one, "y"); ok && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "a") {
		return stem + "ies"
	}
	return one + "s"
}
