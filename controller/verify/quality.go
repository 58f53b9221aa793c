package verify

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// lastEpochs is how many epochs a quality is taken over.
const lastEpochs = 3

// qualityLost reports whether the result got worse by more than the guard allows,
// as a share of the untuned quality.
//
// Between jobs it compares at equal epochs: the mean loss over the last epochs
// that both did, averaged over the pairs. Within one job no two epochs are
// equal; there a job that learns must not fall back, so the median quality of
// the last tuned epochs is held against that of the last untuned ones, once there
// are enough of both. Warm-up and pollution change the time of an epoch, not
// what it learned, so such epochs count here.
func (in Input) qualityLost() bool {
	if in.Quality == nil {
		return false
	}
	if len(in.Pairs) == 0 {
		before, after := qualities(in.Before), qualities(in.After)
		if len(before) < lastEpochs || len(after) < lastEpochs {
			return false
		}
		return in.loss(median(tail(before)), median(tail(after))) > in.Quality.MaxLoss
	}
	var losses []float64
	for _, p := range in.Pairs {
		if l, ok := in.pairLoss(p); ok {
			losses = append(losses, l)
		}
	}
	return len(losses) > 0 && stat.Mean(losses, nil) > in.Quality.MaxLoss
}

func (in Input) pairLoss(p Pair) (float64, bool) {
	var losses []float64
	for t, u := range matching(p) {
		if t.Quality != nil && u.Quality != nil {
			losses = append(losses, in.loss(*u.Quality, *t.Quality))
		}
	}
	if len(losses) == 0 {
		return 0, false
	}
	return stat.Mean(tail(losses), nil), true
}

// loss is how much worse the tuned quality is, as a share of the untuned.
func (in Input) loss(untuned, tuned float64) float64 {
	worse := untuned - tuned
	if in.Quality.Direction == "min" {
		worse = -worse
	}
	return worse / max(math.Abs(untuned), 1e-12)
}

func qualities(epochs []Epoch) []float64 {
	var out []float64
	for _, e := range epochs {
		if e.Quality != nil && !e.Probe {
			out = append(out, *e.Quality)
		}
	}
	return out
}

func tail(xs []float64) []float64 { return xs[max(0, len(xs)-lastEpochs):] }
