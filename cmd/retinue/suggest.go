package main

import (
	"fmt"
	"strings"

	"github.com/retinue-sched/retinue/daemon/spell"
)

// suggest ends a sentence about a word that is not known: with the known one that is nearest, or with all of them if none is near.
func suggest(word string, known []string) string {
	folded := strings.ToLower(word)
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := spell.Distance(folded, strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; there are " + strings.Join(known, ", ")
}
