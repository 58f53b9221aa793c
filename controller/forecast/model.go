package forecast

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// How the ensemble is put together; one choice for all development curves, whose
// neighbours do little worse.
const (
	oldest     = 0.3  // the shortest prefix that is judged, as a share of what was seen
	origins    = 5    // prefixes that are judged
	noiseShare = 0.5  // of the noise counts as error of every model
	biasShare  = 0.45 // of the mean error on what was seen is taken off
	shrink     = 0.5  // of the square error on what was seen counts against going on
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
	weight float64 // all sum to 1
}

// fitAll fits the models on z over epochs k (from 1) and judges each by prefixes.
func fitAll(z, k []float64, floor float64) ensemble {
	e := ensemble{models: fitModels(z, k, floor), noise: noiseOf(z), floor: floor}
	tests := backtest(z, k, floor)
	var sum float64
	for m := range Last + 1 {
		var square float64
		for _, t := range tests {
			d := t.told[m] - t.truth
			square += t.weight * d * d
		}
		if m != FromNow || !math.IsInf(floor, -1) { // else it is not its own word
			e.weights[m] = 1 / (noiseShare*e.noise + smallest + math.Sqrt(square))
		}
		sum += e.weights[m]
	}
	for m := range Last + 1 {
		e.weights[m] /= sum
	}
	for _, t := range tests {
		d := stat.Mean(t.told[:], e.weights[:]) - t.truth
		e.bias += t.weight * d
		e.back += t.weight * d * d
	}
	e.back = math.Sqrt(e.back)
	return e
}

// backtest fits prefixes of what was seen and asks them about the rest.
func backtest(z, k []float64, floor float64) []test {
	var tests []test
	n := len(z)
	first := max(fewest, int(math.Round(oldest*float64(n))))
	step := max(1, (n-first+origins-1)/origins)
	for m := first; m < n; m += step {
		fits := ensemble{models: fitModels(z[:m], k[:m], floor), floor: floor}
		for j := m; j < n; j++ {
			tests = append(tests, test{fits.told(k[j]), z[j], 1 / float64(n-m)})
		}
	}
	prefixes := float64((n - first + step - 1) / step)
	for i := range tests {
		tests[i].weight /= prefixes
	}
	return tests
}

func (e ensemble) told(k float64) [models]float64 {
	var out [models]float64
	for m := range Last + 1 {
		out[m] = max(e.models[m].at(k), e.floor)
	}
	return out
}

// Model is one member of the ensemble.
type Model int

// The members. Epochs k are counted from the beginning of the fitted piece, from 1.
const (
	Inverse     Model = iota // c + a / (k + b): 1/(a k + b) + c
	Power                    // c + a k^-p
	Exponential              // c + a exp(-k / t)
	FromNow                  // k(l) = j + (h/l) ln(d/l), one parameter, through the last value
	Last                     // the last value
)

// models is how many there are.
const models = int(Last) + 1

func (m Model) String() string {
	return [models]string{"inverse", "power", "exponential", "from-now", "last"}[m]
}

// fitted is one model with its parameters, in units of the curve.
type fitted struct {
	model Model
	c, a  float64 // limit and size; of FromNow the floor and h
	shape float64 // b, p or t; of FromNow d
	shift float64 // of FromNow: what brings the rule to the last value
}

const (
	// recency is how much more the newest epoch weighs in a fit than the oldest: what
	// the curve does now says more about what it will do than how it began.
	recency = 16
	shapes  = 15 // into which a range of shapes is cut
	rounds  = 3  // each looks closer at the best of the one before
)

// shapeOf spaces the shapes by ratio: t from 0 to 1, for a piece of n epochs.
func (m Model) shapeOf(t, n float64) float64 {
	switch m {
	case Inverse:
		return -0.5 + 0.5*math.Pow(8*n, t)
	case Power:
		return 0.1 * math.Pow(30, t)
	default:
		return 0.5 * math.Pow(4*n, t)
	}
}

// basis is the falling part of a model at epoch k, whose logarithm is ln.
func (m Model) basis(shape, k, ln float64) float64 {
	switch m {
	case Inverse:
		return 1 / (k + shape)
	case Power:
		return math.Exp(-shape * ln)
	default:
		return math.Exp(-k / shape)
	}
}

// fitModels fits all members on z over epochs k, from 1.
func fitModels(z, k []float64, floor float64) [models]fitted {
	f := fitter{z: z, k: k, w: make([]float64, len(z)), ln: make([]float64, len(z)), x: make([]float64, len(z)), floor: floor}
	pace := math.Log(recency) / max(k[len(k)-1]-k[0], 1)
	for i := range f.w {
		f.w[i], f.ln[i] = math.Exp(pace*(k[i]-k[0])), math.Log(k[i])
	}
	var out [models]fitted
	for m := range Last + 1 {
		out[m] = f.fit(m)
	}
	return out
}

// fitter holds what the fits of one prefix share.
type fitter struct {
	z, k, w []float64 // values in units, epochs from 1, weights
	ln      []float64 // of the epochs
	x       []float64 // scratch
	floor   float64
}

func (f fitter) fit(m Model) fitted {
	switch m {
	case Last:
		return fitted{model: Last, c: f.z[len(f.z)-1]}
	case FromNow:
		return f.fromNow()
	default:
	}
	best, at := math.Inf(1), 0.0
	var out fitted
	n := f.k[len(f.k)-1] - f.k[0] + 1
	low, high := 0.0, 1.0
	for range rounds {
		step := (high - low) / shapes
		for i := range shapes + 1 {
			t := low + float64(i)*step
			if got, loss := f.linear(m, m.shapeOf(t, n)); loss < best {
				best, out, at = loss, got, t
			}
		}
		low, high = max(at-step, 0), min(at+step, 1)
	}
	return out
}

// linear fits limit and size for a given shape by weighted least squares and returns the
// loss. Neither the size nor the height of the limit over the floor falls below 0.
func (f fitter) linear(m Model, shape float64) (fitted, float64) {
	var s0, s1, s2, sy, sxy float64
	for i, w := range f.w {
		x := m.basis(shape, f.k[i], f.ln[i])
		f.x[i] = x
		s0 += w
		s1 += w * x
		s2 += w * x * x
		sy += w * f.z[i]
		sxy += w * x * f.z[i]
	}
	out := fitted{model: m, shape: shape}
	if spread := s2*s0 - s1*s1; spread > 1e-14*s2*s0 {
		out.a = max((sxy*s0-s1*sy)/spread, 0)
	}
	out.c = (sy - out.a*s1) / s0
	if out.c < f.floor {
		out.c = f.floor
		out.a = max((sxy-out.c*s1)/s2, 0)
	}
	var loss float64
	for i, w := range f.w {
		r := f.z[i] - out.c - out.a*f.x[i]
		loss += w * r * r
	}
	return out, loss
}

// fromNow fits the one parameter h of k(l) = j + (h/l) ln(d/l), where l is the height
// over the floor, d the largest of it and j the first epoch, and then moves the rule so
// that it goes through the last value: what remains is counted from now. Without a floor,
// or where the curve does not fall, it is the last value.
func (f fitter) fromNow() fitted {
	n := len(f.z)
	flat := fitted{model: Last, c: f.z[n-1]}
	d := slices.Max(f.z) - f.floor
	if !(d > 0) || math.IsInf(d, 1) {
		return flat
	}
	steps := func(z float64) float64 {
		l := max(z-f.floor, 1e-6*d)
		return math.Log(d/l) / l
	}
	var sxy, sxx float64
	for i, z := range f.z {
		x := steps(z)
		sxy += x * (f.k[i] - f.k[0])
		sxx += x * x
	}
	if !(sxx > 0) || !(sxy > 0) {
		return flat
	}
	h := sxy / sxx
	return fitted{model: FromNow, c: f.floor, a: h, shape: d, shift: h*steps(f.z[n-1]) - f.k[n-1]}
}

// at is the value of the model at epoch k, in units.
func (f fitted) at(k float64) float64 {
	switch f.model {
	case Last:
		return f.c
	case FromNow: // steps = (h/l) ln(d/l): with x = ln(d/l) it is x e^x = steps d/h
		if steps := k + f.shift; steps > 0 {
			return f.c + f.shape*math.Exp(-lambert(steps*f.shape/f.a))
		}
		return f.c + f.shape
	default:
	}
	return f.c + f.a*f.model.basis(f.shape, k, math.Log(k))
}

// lambert solves x e^x = y for y above 0, by Halley's steps on a start that is near.
func lambert(y float64) float64 {
	x := math.Log1p(y)
	if y > math.E {
		l := math.Log(y)
		x = l - math.Log(l)
	}
	for range 6 {
		e := math.Exp(x)
		off := x*e - y
		x -= off / (e*(x+1) - (x+2)*off/(2*x+2))
	}
	return x
}
