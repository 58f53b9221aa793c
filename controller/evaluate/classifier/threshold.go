package classifier

import (
	"math"

	"pitchpipe/controller/tuning"
)

// answer is one question's nearest class.
type answer struct {
	distance float64 // over radius; +Inf: compared with nothing
	right    bool    // the class is mostly the program's
}

func answerOf(c tuning.Class, right bool) answer {
	if c.Radius > 0 {
		return answer{c.Distance / c.Radius, right}
	}
	return answer{math.Inf(1), false}
}

// limits are the multiples of a radius that are asked about.
func limits() []float64 { return []float64{0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3} }

func (b *bench) thresholds() []Threshold {
	var out []Threshold
	for _, limit := range limits() {
		known, right, taken := 0, 0, 0
		for _, a := range b.asked {
			if a.distance <= limit {
				known++
				if a.right {
					right++
				}
			}
		}
		for _, a := range b.left {
			if a.distance <= limit {
				taken++
			}
		}
		out = append(out, Threshold{
			Limit: limit, Recognised: share(known, len(b.asked)), Precision: share(right, known), CalledKnown: share(taken, len(b.left)),
		})
	}
	return out
}
