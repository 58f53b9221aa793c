package forecast

import "math"

// How the ensemble is put together; one choice for all development curves, whose
// neighbours do little worse.
const (
	oldest     = 0.3  // the shortest prefix that is judged, as a share of what was seen
	origins    = 5    // prefixes that are judged
	noiseShare = 0.5  // of the noise counts as error of every model
	biasShare  = 0.45 // of the mean error on what was seen is taken off
	smallest   = 1e-9 // error in units
)

// ensemble is the models of one piece of a curve with what they are worth.
type ensemble struct {
	models  [models]fitted
	weights [models]float64 // sum to 1
	bias    float64         // mean error on the seen part, in units
	back    float64         // root mean square error there
	noise   float64
	floor   float64
}

// test is one model's word about a part that was seen, against the truth.
type test struct {
	told   [models]float64
	truth  float64
	weight float64
}

// fitAll fits the models on z over epochs k (from 1) and judges each by prefixes.
func fitAll(z, k []float64, floor float64) ensemble {
	e := ensemble{models: fitModels(z, k, floor), noise: noiseOf(z), floor: floor}
	tests, total := backtest(z, k, floor)
	var sum float64
	for m := range Last + 1 {
		var square float64
		for _, t := range tests {
			d := t.told[m] - t.truth
			square += t.weight * d * d
		}
		err := noiseShare*e.noise + smallest
		if total > 0 {
			err += math.Sqrt(square / total)
		}
		e.weights[m] = 1 / err
		if m == FromNow && math.IsInf(floor, -1) {
			e.weights[m] = 0 // it is no word of its own
		}
		sum += e.weights[m]
	}
	for m := range Last + 1 {
		e.weights[m] /= sum
	}
	if total > 0 {
		var square float64
		for _, t := range tests {
			d := mix(t.told, e.weights) - t.truth
			e.bias += t.weight * d / total
			square += t.weight * d * d / total
		}
		e.back = math.Sqrt(square)
	}
	return e
}

// backtest fits prefixes of what was seen and asks them about the rest.
func backtest(z, k []float64, floor float64) (tests []test, total float64) {
	n := len(z)
	first := max(fewest, int(math.Round(oldest*float64(n))))
	step := max(1, (n-first+origins-1)/origins)
	for m := first; m < n; m += step {
		fits := ensemble{models: fitModels(z[:m], k[:m], floor), floor: floor}
		for j := m; j < n; j++ {
			weight := 1 / float64(n-m)
			tests = append(tests, test{fits.told(k[j]), z[j], weight})
			total += weight
		}
	}
	return tests, total
}

func mix(told, weights [models]float64) float64 {
	var v float64
	for m := range Last + 1 {
		v += weights[m] * told[m]
	}
	return v
}

// told is what each model says about epoch k, in units.
func (e ensemble) told(k float64) [models]float64 {
	var out [models]float64
	for m := range Last + 1 {
		out[m] = max(e.models[m].at(k), e.floor)
	}
	return out
}

// spread is how far the models are apart at what they say, around the value v.
func spread(told, weights [models]float64, v float64) float64 {
	var s float64
	for m := range Last + 1 {
		d := told[m] - v
		s += weights[m] * d * d
	}
	return math.Sqrt(s)
}
