package design

import "math"

// Seen is one measurement of a candidate.
type Seen struct {
	At     int     // the candidate's index
	Log    float64 // logarithm of the outcome, which is minimised; without meaning where Failed
	Failed bool    // the run brought no outcome
}

// Tried tells for each of n candidates whether it was measured, failures included.
func Tried(seen []Seen, n int) []bool {
	out := make([]bool, n)
	for _, s := range seen {
		out[s.At] = true
	}
	return out
}

// Worst is the greatest outcome that was measured; false where every run failed.
func Worst(seen []Seen) (float64, bool) {
	worst := math.Inf(-1)
	for _, s := range seen {
		if !s.Failed {
			worst = max(worst, s.Log)
		}
	}
	return worst, !math.IsInf(worst, -1)
}

// Least is the candidate with the least outcome measured, the first of equals; -1 where
// every run failed.
func Least(seen []Seen) int {
	best, least := -1, math.Inf(1)
	for _, s := range seen {
		if !s.Failed && s.Log < least {
			best, least = s.At, s.Log
		}
	}
	return best
}
