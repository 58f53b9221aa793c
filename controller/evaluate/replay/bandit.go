package replay

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/search/propose"
)

const (
	levels    = 5   // into how many parts the values of a knob are cut
	luckShare = 0.3 // of the spread of outcomes that is noise and not the effect of a knob
)

// bandit is Thompson sampling: each part of each knob is an arm, and the effects of knobs
// add up. It knows nothing about neighbours, and is what the smoother process has to beat.
type bandit struct {
	*propose.Candidates
	rng *rand.Rand
}

// arm is the part of an axis that a point lies in.
func (b bandit) arm(axis int, p []float64) int {
	if len(b.Axes[axis].Words) > 0 {
		return int(p[axis])
	}
	return max(0, min(int(p[axis]*levels), levels-1))
}

// Next draws an effect for each part of each knob from what the trials leave open, and is the
// candidate that would be best if the draw were true.
func (b bandit) Next(trials []propose.Trial) (int, error) {
	at, losses := propose.Outcomes(trials)
	mean, spread := stat.MeanStdDev(losses, nil)
	if !(spread > 0) { // there are less than two different ones
		spread = 1
	}
	type arm struct{ axis, part int }
	sums, counts, effect := map[arm]float64{}, map[arm]float64{}, map[arm]float64{}
	for i, p := range at {
		for a := range b.Axes {
			k := arm{a, b.arm(a, b.Points[p])}
			sums[k], counts[k] = sums[k]+losses[i]-mean, counts[k]+1
		}
	}
	next, least := -1, math.Inf(1)
	for i, p := range b.Points {
		sum := 0.0
		for a := range b.Axes {
			k := arm{a, b.arm(a, p)}
			if _, drawn := effect[k]; !drawn {
				n := counts[k] + luckShare*luckShare // an effect is as large as the spread, before anything was seen
				effect[k] = sums[k]/n + b.rng.NormFloat64()*luckShare*spread/math.Sqrt(n)
			}
			sum += effect[k]
		}
		if sum < least && !slices.Contains(at, i) {
			next, least = i, sum
		}
	}
	return next, nil
}
