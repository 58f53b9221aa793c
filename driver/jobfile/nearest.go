package jobfile

import (
	"fmt"
	"strings"
)

// longest is the length of a word above which no suggestion is looked for.
const longest = 64

// Suggestion asks whether the nearest known word was meant, as the end of a sentence; "" where none is near.
func Suggestion(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the known word that is nearest to word, and "" where none is near
// enough to be what was meant. Case does not count. Nearness is the optimal
// string alignment distance (insertions, deletions, substitutions, and swaps of
// neighbours count one each); a third of the letters of the longer word may be wrong. Of two
// equally near words the first one known is returned. A known word that starts with word
// is near too, if word has three letters or more.
func Nearest(word string, known []string) string {
	if word == "" || len(word) > longest {
		return ""
	}
	w := strings.ToLower(word)
	best, least := "", longest
	for _, k := range known {
		d := distance(w, strings.ToLower(k))
		if d < least && d <= max(1, max(len(w), len(k))/3) {
			best, least = k, d
		}
	}
	if best != "" || len(w) < 3 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(strings.ToLower(k), w) {
			return k
		}
	}
	return ""
}

// distance is the optimal string alignment distance of two words in bytes.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			substitution := last[j-1]
			if a[i-1] != b[j-1] {
				substitution++
			}
			row[j] = min(last[j]+1, row[j-1]+1, substitution)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
