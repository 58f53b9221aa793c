package forecast

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Forecast is what is known about a curve. It is a value; the same curve and options
// give the same forecast.
type Forecast struct {
	curve    Curve
	options  Options
	u        unit
	ensemble ensemble
	start    float64 // what is subtracted from an epoch so that the fitted piece begins at 1
	now, end float64 // last seen epoch and total, counted so

	correction float64 // by lessons at the end, in units
	low, high  float64 // ends of the interval, in widths
}

// New makes the forecast of a curve. False: there is none.
func New(c Curve, o Options) (Forecast, bool) {
	if !c.tells(o) {
		return Forecast{}, false
	}
	n := len(c.Values)
	f := Forecast{curve: c, options: o, u: unitOf(c.Values, o.Direction)}
	z := mend(tuning.Each(c.Values, f.u.in))
	floor := f.u.floor(o.Best, z)
	first := segment(c.Epochs, z, o.Changes)
	if n-first < fewest && first > 0 {
		f.fitBefore(z, first, floor)
	} else {
		f.start = c.Epochs[first] - 1
		f.fit(first, n, z, floor)
	}
	f.now, f.end = c.Epochs[n-1]-f.start, o.Total-f.start
	return f.Taught(o.Lessons), true
}

// Taught is the same forecast with other lessons.
func (f *Forecast) Taught(lessons []Lesson) Forecast {
	out := *f
	taught := learn(lessons, f.last(), f.options.Total, f.u)
	blend := f.blend(f.end)
	out.correction = taught.end(f.ensemble.told(f.end), blend) - blend
	out.low, out.high = taught.ends()
	return out
}

func (f *Forecast) last() float64 { return f.curve.Epochs[len(f.curve.Epochs)-1] }

// fitBefore is for a piece that is too young: it is expected to go on as the one before
// did, from where it is now.
func (f *Forecast) fitBefore(z []float64, first int, floor float64) {
	from := segment(f.curve.Epochs[:first], z[:first], f.options.Changes)
	if first-from < fewest {
		from = 0
	}
	f.start = f.curve.Epochs[from] - 1
	f.fit(from, first, z, floor)
	for m := range Last + 1 {
		f.ensemble.models[m].c += z[len(z)-1] - f.ensemble.models[m].at(f.last()-f.start)
	}
	f.ensemble.bias = 0
	f.ensemble.back = math.Hypot(f.ensemble.back, 0.5*math.Abs(z[first]-z[first-1]))
}

// longest is to how many epochs at most models are fitted: the fits take time with each
// of them, and neighbours of a long curve say the same.
const longest = 100

// fit makes the ensemble of the epochs from first up to end, in units z. Of a long piece
// every second or third… epoch is taken, counted from the newest.
func (f *Forecast) fit(first, end int, z []float64, floor float64) {
	step := (end - first + longest - 1) / longest
	n := (end - first + step - 1) / step
	values, epochs := make([]float64, n), make([]float64, n)
	for i := range n {
		at := end - 1 - (n-1-i)*step
		values[i], epochs[i] = z[at], f.curve.Epochs[at]-f.start
	}
	f.ensemble = fitAll(values, epochs, floor)
}

// progress is how far epoch k to come (counted from the piece) is from now to the end, 0 to
// 1, in ratios of epochs.
func (f *Forecast) progress(k float64) float64 {
	return min(math.Log(k/f.now)/math.Log(f.end/f.now), 1)
}

// blend is the ensemble without lessons at epoch k, in units. What it goes on from the last
// value shrinks where hindcasts of the seen part were as wrong as that (James and Stein, 1961).
func (f *Forecast) blend(k float64) float64 {
	told := f.ensemble.told(k)
	g := f.progress(k)
	v := stat.Mean(told[:], f.ensemble.weights[:]) - biasShare*f.ensemble.bias*g
	v *= square(v) / (square(v) + shrink*square(f.ensemble.back*g) + square(smallest))
	return max(v, f.ensemble.floor)
}

// value is the forecast at epoch k and the width that its interval is a multiple of, in
// units.
func (f *Forecast) value(k float64) (v, width float64) {
	g := f.progress(k)
	v = max(f.blend(k)+f.correction*g, f.ensemble.floor)
	e := f.ensemble
	told := e.told(k)
	apart := stat.MomentAbout(2, told[:], v, f.ensemble.weights[:]) // how far the models are apart
	return v, math.Sqrt(square(e.noise) + apart + square(e.back*g) + square(leastWidth*g))
}

// leastWidth is the width where all agree and nothing jitters, in units.
const leastWidth = 0.01

// Value is the value after an epoch that is still to come, with an interval that holds the
// truth four times out of five. False: there is no forecast, as where the learning rate will change
// before.
func (f *Forecast) Value(epoch float64) (tuning.Estimate, bool) {
	changes := slices.ContainsFunc(f.options.Changes, func(c float64) bool { return c > f.last() && c <= epoch })
	if !tuning.Finite(epoch) || epoch <= f.last() || changes {
		return tuning.Estimate{}, false
	}
	v, width := f.value(epoch - f.start)
	low := max(v+f.low*width, f.ensemble.floor) // the better end
	a, b, mid := f.u.out(low), f.u.out(v+f.high*width), f.u.out(v)
	return tuning.Estimate{Value: mid, Low: min(a, b, mid), High: max(a, b, mid)}, true
}

// Lesson is what this forecast of the end teaches, once the value there is known.
func (f *Forecast) Lesson(truth float64) Lesson {
	v, width := f.value(f.end)
	out := Lesson{
		Seen: f.last(), Total: f.options.Total, Last: f.u.last, Truth: truth,
		Blend: f.u.out(f.blend(f.end)),
		Value: f.u.out(v), Unit: width * f.u.width,
	}
	for _, z := range f.ensemble.told(f.end) {
		out.Told = append(out.Told, f.u.out(z))
	}
	return out
}
