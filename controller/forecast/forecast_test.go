package forecast_test

import (
	"math"
	"testing"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/tuning"
)

// drawn is a curve over epochs 1 to n.
func drawn(n int, value func(k float64) float64) forecast.Curve {
	var c forecast.Curve
	for k := 1; k <= n; k++ {
		c.Epochs = append(c.Epochs, float64(k))
		c.Values = append(c.Values, value(float64(k)))
	}
	return c
}

func inverse(k float64) float64     { return 0.3 + 1/(0.5*k+0.4) }
func power(k float64) float64       { return 0.2 + 1.5*math.Pow(k, -0.7) }
func exponential(k float64) float64 { return 0.4 + 2*math.Exp(-k/8) }

// fromNow solves k = 1 + (h/l) ln(d/l) for l by halving.
func fromNow(k float64) float64 {
	const h, d = 2.0, 3.0
	lo, hi := 1e-9, d
	for range 200 {
		if mid := (lo + hi) / 2; 1+h/mid*math.Log(d/mid) > k {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

func loss(total float64) forecast.Options {
	return forecast.Options{Direction: forecast.Min, Best: new(0.0), Total: total}
}

func made(t *testing.T, c forecast.Curve, o forecast.Options) forecast.Forecast {
	t.Helper()
	f, known := forecast.New(c, o)
	if !known {
		t.Fatal("unknown")
	}
	return f
}

func at(t *testing.T, f forecast.Forecast, epoch float64) tuning.Estimate {
	t.Helper()
	e, known := f.Value(epoch)
	if !known {
		t.Fatal("unknown")
	}
	return e
}

func TestACurveOfAFamilyIsRecognisedByItsModel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model forecast.Model
		curve func(float64) float64
	}{
		{forecast.Inverse, inverse},
		{forecast.Power, power},
		{forecast.Exponential, exponential},
		{forecast.FromNow, fromNow},
	} {
		t.Run(tc.model.String(), func(t *testing.T) {
			t.Parallel()
			f := made(t, drawn(15, tc.curve), loss(50))
			truth, fallen := tc.curve(50), tc.curve(1)-tc.curve(15)
			var best forecast.Model
			var weight float64
			for _, w := range f.Words(50) {
				if w.Model == tc.model && math.Abs(w.Value-truth) > 0.002*fallen {
					t.Errorf("the model says %g, the curve goes to %g", w.Value, truth)
				}
				if w.Weight > weight {
					best, weight = w.Model, w.Weight
				}
			}
			if best != tc.model {
				t.Errorf("heeded most is %s", best)
			}
			e := at(t, f, 50)
			if math.Abs(e.Value-truth) > 0.03*fallen || truth < e.Low || truth > e.High {
				t.Errorf("forecast %+v, the curve goes to %g", e, truth)
			}
		})
	}
}

func TestAQualityIsForecastAsALossUpsideDown(t *testing.T) {
	t.Parallel()
	up := at(t, made(t, drawn(12, func(k float64) float64 { return 1 - power(k)/2 }),
		forecast.Options{Direction: forecast.Max, Best: new(1.0), Total: 40}), 40)
	down := at(t, made(t, drawn(12, func(k float64) float64 { return power(k) / 2 }), loss(40)), 40)
	if math.Abs(up.Value-(1-down.Value)) > 1e-6 || math.Abs(up.Low-(1-down.High)) > 1e-6 || math.Abs(up.High-(1-down.Low)) > 1e-6 {
		t.Errorf("upwards %+v, downwards %+v", up, down)
	}
}

func TestASingleOddEpochHardlyMatters(t *testing.T) {
	t.Parallel()
	truth := power(40)
	for odd := 1; odd < 15; odd++ {
		for _, jump := range []float64{5, -0.9} {
			c := drawn(15, power)
			c.Values[odd] += jump
			if c.Values[odd] < 0 && odd < 14 {
				c.Values[odd] = 0
			}
			if odd == 14 && jump < 0 {
				continue // a sudden success may be one
			}
			if e := at(t, made(t, c, loss(40)), 40); math.Abs(e.Value-truth) > 0.08*(power(1)-power(15)) {
				t.Errorf("odd by %g in epoch %d: %g, the curve goes to %g", jump, odd+1, e.Value, truth)
			}
		}
	}
}

// dropped falls to half of what it was after epoch 12, as with another learning rate,
// and goes on from there.
func dropped(k float64) float64 {
	if k <= 12 {
		return 1 + math.Exp(-k/3)
	}
	return 0.4 + 0.2*math.Exp(-(k-12)/6)
}

func TestTheFitBeginsAnewWhereTheLearningRateChanges(t *testing.T) {
	t.Parallel()
	declared := loss(40)
	declared.Changes = []float64{13}
	for _, tc := range []struct {
		name    string
		seen    int
		options forecast.Options
		within  float64
	}{
		{"where the change is seen", 20, loss(40), 0.03},
		{"where the change is declared", 20, declared, 0.03},
		{"where the new piece is two epochs old", 14, declared, 0.25},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := at(t, made(t, drawn(tc.seen, dropped), tc.options), 40)
			if math.Abs(e.Value-dropped(40)) > tc.within || dropped(40) < e.Low || dropped(40) > e.High {
				t.Errorf("forecast %+v, the curve goes to %g", e, dropped(40))
			}
		})
	}
}

func TestWhatIsUnknownSaysSo(t *testing.T) {
	t.Parallel()
	twice := drawn(5, power)
	twice.Epochs[3] = twice.Epochs[2]
	wild := drawn(5, power)
	wild.Values[2] = math.NaN()
	for _, tc := range []struct {
		name  string
		curve forecast.Curve
		total float64
		want  bool
	}{
		{"nothing was seen", forecast.Curve{}, 9, false},
		{"two epochs were seen", drawn(2, power), 9, false},
		{"an epoch stands twice", twice, 9, false},
		{"a value is no number", wild, 9, false},
		{"the end is no number", drawn(5, power), math.Inf(1), false},
		{"the job is at its end", drawn(5, power), 5, false},
		{"all is well", drawn(5, power), 9, true},
	} {
		if _, known := forecast.New(tc.curve, loss(tc.total)); known != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, known, tc.want)
		}
	}
	o := loss(30)
	o.Changes = []float64{20}
	f := made(t, drawn(10, power), o)
	for _, tc := range []struct {
		epoch float64
		want  bool
	}{{10, false}, {19, true}, {20, false}, {math.NaN(), false}} {
		if _, known := f.Value(tc.epoch); known != tc.want {
			t.Errorf("epoch %g: %v, want %v", tc.epoch, known, tc.want)
		}
	}
}

func TestAKindThatEndsAlikeIsLearnedFromAFewRuns(t *testing.T) {
	t.Parallel()
	// Runs that fall at their own paces, much lower than they seem to, and end alike.
	run := func(pace float64) func(float64) float64 {
		return func(k float64) float64 { return 0.1 + 0.9*math.Exp(-pace*k*k/1600) }
	}
	var lessons []forecast.Lesson
	var errs []float64
	for _, pace := range []float64{7, 9, 8, 10, 6} {
		o := loss(40)
		o.Lessons = lessons
		f := made(t, drawn(10, run(pace)), o)
		errs = append(errs, math.Abs(at(t, f, 40).Value-run(pace)(40)))
		lessons = append(lessons, f.Lesson(run(pace)(40)))
	}
	if errs[0] < 0.1 || errs[4] > 0.2*errs[0] {
		t.Errorf("off by %.3f: want the fifth within a fifth of the first", errs)
	}
}

// odd is a kind of job that no model expects: it falls to half in its last epochs.
func oddKind(size float64) func(k float64) float64 {
	return func(k float64) float64 {
		v := size * (0.5 + 1/k)
		if k > 35 {
			v /= 2
		}
		return v
	}
}

func TestAKindIsLearned(t *testing.T) {
	t.Parallel()
	var lessons []forecast.Lesson
	var first, last float64
	for run := range 30 {
		truth := oddKind(1 + 0.01*float64(run%7))
		o := loss(40)
		o.Lessons = lessons
		f := made(t, drawn(12, truth), o)
		e := at(t, f, 40)
		last = math.Abs(e.Value-truth(40)) / truth(40)
		if run == 0 {
			first = last
		} else if run > 10 && (truth(40) < e.Low || truth(40) > e.High) {
			t.Errorf("run %d: %+v, the truth is %g", run, e, truth(40))
		}
		lessons = append(lessons, f.Lesson(truth(40)))
	}
	if first < 0.5 || last > 0.05 {
		t.Errorf("off by %g in the first run and by %g in the last", first, last)
	}
}

func TestLessonsThatDoNotFitChangeNothing(t *testing.T) {
	t.Parallel()
	f := made(t, drawn(12, power), loss(40))
	late := f.Lesson(0.1)
	late.Seen = 30
	broken := f.Lesson(math.NaN())
	if a, b := at(t, f, 40), at(t, f.Taught([]forecast.Lesson{late, broken, {}}), 40); a != b {
		t.Errorf("%+v without lessons, %+v with them", a, b)
	}
}

func TestTheNewestLessonsCount(t *testing.T) {
	t.Parallel()
	f := made(t, drawn(12, power), loss(40))
	old, young := make([]forecast.Lesson, 5), make([]forecast.Lesson, forecast.Remembered)
	for i := range old {
		old[i] = f.Lesson(3)
	}
	for i := range young {
		young[i] = f.Lesson(0.1)
	}
	if a, b := at(t, f, 40), at(t, f.Taught(young), 40); a == b {
		t.Errorf("%+v with lessons and without", a)
	}
	if a, b := at(t, f.Taught(young), 40), at(t, f.Taught(append(old, young...)), 40); a != b {
		t.Errorf("%+v without the oldest lessons, %+v with them", a, b)
	}
}

func BenchmarkForecast(b *testing.B) {
	c := drawn(26, power)
	o := loss(52)
	f, _ := forecast.New(c, o)
	for range 200 {
		o.Lessons = append(o.Lessons, f.Lesson(0.3))
	}
	for b.Loop() {
		if _, known := forecast.New(c, o); !known {
			b.Fatal("unknown")
		}
	}
}
