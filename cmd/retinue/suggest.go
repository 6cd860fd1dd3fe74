package main

import (
	"fmt"
	"strings"
)

// suggest ends a sentence about a word that is not known: with the known one that is nearest, or with all of them if none is near.
func suggest(word string, known []string) string {
	folded := strings.ToLower(word)
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(folded, strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; there are " + strings.Join(known, ", ")
}

// editDistance is how many letters must be changed, added or removed to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
