package forecast_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/forecast"
)

// drawCurve is any curve: falling, rising, flat, jittering, with jumps and odd epochs.
func drawCurve(t *rapid.T) forecast.Curve {
	n := rapid.IntRange(3, 40).Draw(t, "epochs")
	shape := rapid.SampledFrom([]func(float64) float64{
		inverse, power, exponential, fromNow, dropped,
		func(float64) float64 { return 0.7 },
		func(k float64) float64 { return 0.5 + 0.01*k },
	}).Draw(t, "shape")
	noise := rapid.SampledFrom([]float64{0, 0.001, 0.05, 1}).Draw(t, "noise")
	return drawn(n, func(k float64) float64 { return shape(k) + noise*rapid.Float64Range(0, 1).Draw(t, "jitter") })
}

func drawOptions(t *rapid.T, c forecast.Curve) forecast.Options {
	o := forecast.Options{
		Direction: rapid.SampledFrom([]forecast.Direction{forecast.Min, forecast.Max}).Draw(t, "direction"),
		Total:     float64(len(c.Values)) + float64(rapid.IntRange(1, 200).Draw(t, "left")),
	}
	if rapid.Bool().Draw(t, "best is known") {
		o.Best = new(rapid.SampledFrom([]float64{0, 1, 10}).Draw(t, "best"))
	}
	return o
}

// taught gives options lessons of a few curves of the same lengths.
func taught(t *rapid.T, c forecast.Curve, o forecast.Options) []forecast.Lesson {
	var out []forecast.Lesson
	for range rapid.IntRange(0, 5).Draw(t, "lessons") {
		size := rapid.Float64Range(0.5, 2).Draw(t, "size")
		other := drawn(len(c.Values), func(k float64) float64 { return size * power(k) })
		if f, known := forecast.New(other, o); known {
			out = append(out, f.Lesson(rapid.Float64Range(0, 2).Draw(t, "truth")))
		}
	}
	return out
}

func near(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-6*scale }

func TestScalingOrShiftingACurveScalesOrShiftsItsForecast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		o := drawOptions(t, c)
		scale := rapid.SampledFrom([]float64{1e-3, 0.25, 4, 1e4}).Draw(t, "scale")
		shift := rapid.SampledFrom([]float64{0, -2, 8}).Draw(t, "shift") * scale
		if lo, hi := ends(c.Values); hi-lo < 1e-3 {
			shift = 0 // a flat curve has its height as its only width
		}
		moved, to := c, o
		moved.Values = nil
		for _, v := range c.Values {
			moved.Values = append(moved.Values, v*scale+shift)
		}
		if o.Best != nil {
			to.Best = new(*o.Best*scale + shift)
		}
		if shift == 0 {
			o.Lessons = taught(t, c, o)
			for _, l := range o.Lessons {
				to.Lessons = append(to.Lessons, scaled(l, scale))
			}
		}
		a, known := forecast.New(c, o)
		b, also := forecast.New(moved, to)
		if !known || !also {
			t.Fatalf("unknown: %v, %v", known, also)
		}
		x, _ := a.Value(o.Total)
		y, _ := b.Value(o.Total)
		size := (math.Abs(x.Value) + x.High - x.Low + 1) * scale
		if !near(x.Value*scale+shift, y.Value, size) || !near(x.Low*scale+shift, y.Low, size) || !near(x.High*scale+shift, y.High, size) {
			t.Fatalf("%+v becomes %+v", x, y)
		}
	})
}

func scaled(l forecast.Lesson, by float64) forecast.Lesson {
	for _, v := range []*float64{&l.Last, &l.Blend, &l.Value, &l.Unit, &l.Truth} {
		*v *= by
	}
	l.Told = slices.Clone(l.Told)
	for i := range l.Told {
		l.Told[i] *= by
	}
	return l
}

func ends(x []float64) (lo, hi float64) {
	lo, hi = x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func TestAForecastIsFiniteAndItsIntervalHoldsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		for i := range c.Values {
			if rapid.IntRange(0, 9).Draw(t, "wild") == 0 {
				c.Values[i] = rapid.SampledFrom([]float64{0, -1, 1e-300, 1e12, -1e12}).Draw(t, "value")
			}
		}
		o := drawOptions(t, c)
		o.Lessons = taught(t, c, o)
		f, known := forecast.New(c, o)
		if !known {
			t.Fatal("unknown")
		}
		for _, epoch := range []float64{float64(len(c.Values)) + 1, o.Total, 3 * o.Total} {
			e, known := f.Value(epoch)
			if !known {
				t.Fatal("unknown")
			}
			if !(e.Low <= e.Value && e.Value <= e.High) || math.IsInf(e.Low, 0) || math.IsInf(e.High, 0) {
				t.Fatalf("epoch %g: %+v", epoch, e)
			}
		}
		var sum float64
		for _, w := range f.Words(o.Total) {
			sum += w.Weight
			if math.IsNaN(w.Value) || math.IsInf(w.Value, 0) || !(w.Weight >= 0) {
				t.Fatalf("%+v", w)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("the weights sum to %g", sum)
		}
	})
}

func TestWhatOnlyFallsIsNotExpectedToRiseAboveItsBeginning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := 10.0
		c := drawn(rapid.IntRange(3, 30).Draw(t, "epochs"), func(float64) float64 {
			v *= rapid.Float64Range(0.5, 1).Draw(t, "left")
			return v
		})
		o := loss(float64(len(c.Values) + rapid.IntRange(1, 100).Draw(t, "left epochs")))
		f, known := forecast.New(c, o)
		if !known {
			t.Fatal("unknown")
		}
		if e, _ := f.Value(o.Total); e.Value > c.Values[0] || e.Low < -1e-9 {
			t.Fatalf("%+v after a fall from %g to %g", e, c.Values[0], v)
		}
	})
}

func TestTheSameCurveGivesTheSameForecast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		o := drawOptions(t, c)
		o.Lessons = taught(t, c, o)
		a, _ := forecast.New(c, o)
		b, _ := forecast.New(c, o)
		x, _ := a.Value(o.Total)
		y, _ := b.Value(o.Total)
		if x != y {
			t.Fatalf("first %+v, then %+v", x, y)
		}
	})
}
