package forecast_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/tuning"
)

func on(n float64) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(n)} }

// worked are epochs of so many seconds under the settings, with ten joules a second.
func worked(s tuning.Settings, seconds ...float64) []tuning.Epoch {
	at := time.Unix(1000, 0)
	out := make([]tuning.Epoch, len(seconds))
	for i, v := range seconds {
		j := tuning.Joules(10 * v)
		end := at.Add(time.Duration(v * float64(time.Second)))
		out[i] = tuning.Epoch{Number: i + 1, Attempt: 1, Start: at, End: end, Joules: &j, Source: "rapl", Settings: s}
		at = end
	}
	return out
}

func work(total int, epochs ...tuning.Epoch) forecast.Work {
	return forecast.Work{Epochs: epochs, Own: on(8), Current: on(8), Done: len(epochs), Total: total}
}

func TestWhatIsLeftIsKnownWhereTheJobSaysItsEpochs(t *testing.T) {
	t.Parallel()
	steady := worked(on(8), 2, 2, 2, 2)
	kind := &tuning.Trial{Settings: on(8), Epochs: 9, Seconds: 3}
	for _, c := range []struct {
		name    string
		work    func() forecast.Work
		reason  tuning.Reason
		basis   tuning.Basis
		seconds float64
	}{
		{"by its own epochs", func() forecast.Work { return work(10, steady...) }, "", tuning.BasisOwn, 12},
		{"not where their number is unknown", func() forecast.Work { return work(0, steady...) }, tuning.ReasonNoTotal, "", 0},
		{"not before one was measured", func() forecast.Work { return work(10) }, tuning.ReasonProfiling, "", 0},
		{"warm-up tells nothing", func() forecast.Work {
			w := work(10, worked(on(8), 9)...)
			w.Epochs[0].Warmup = true
			return w
		}, tuning.ReasonProfiling, "", 0},
		{"nor does what others disturbed", func() forecast.Work {
			w := work(10, worked(on(8), 2, 9)...)
			w.Epochs[1].Polluted = true
			return w
		}, "", tuning.BasisOwn, 16},
		{"by the present ones where its owner's were not measured", func() forecast.Work {
			w := work(10, worked(on(4), 3, 3)...)
			w.Current = on(4)
			return w
		}, "", tuning.BasisPresent, 24},
		{"by the last job of its kind before it starts", func() forecast.Work {
			w := work(10)
			w.Kind = kind
			return w
		}, "", tuning.BasisKind, 30},
		{"not by that once it runs", func() forecast.Work {
			w := work(10)
			w.Kind, w.Done = kind, 1
			return w
		}, tuning.ReasonProfiling, "", 0},
		{"nothing is left of a job that did more than it said", func() forecast.Work { return work(3, steady...) }, "", tuning.BasisOwn, 0},
		{"the newest epochs say how the next will be", func() forecast.Work {
			return work(18, worked(on(8), 8, 8, 8, 4, 4, 4, 2, 2, 2)...)
		}, "", tuning.BasisOwn, 18},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := forecast.Left(c.work())
			if f.Reason != c.reason || f.Basis != c.basis || f.IsKnown() != (c.reason == "") {
				t.Fatalf("reason %q, basis %q, known %v; want %q and %q", f.Reason, f.Basis, f.IsKnown(), c.reason, c.basis)
			}
			if f.IsKnown() && (math.Abs(f.Seconds.Value-c.seconds) > 1e-9 || f.Seconds.Low > f.Seconds.Value || f.Seconds.High < f.Seconds.Value) {
				t.Errorf("%+v s are left, want %g s", *f.Seconds, c.seconds)
			}
		})
	}
}

func TestJoulesThatAreMissingAreNotZero(t *testing.T) {
	t.Parallel()
	w := work(10, worked(on(8), 2, 2, 2, 2)...)
	if f := forecast.Left(w); f.Joules.Value != 120 || f.Spent.Value != 80 || f.Spent.High != 80 || f.JoulesSource != "rapl" {
		t.Errorf("left %+v, spent %+v by %s", f.Joules, f.Spent, f.JoulesSource)
	}
	w.Epochs[0].Joules, w.Epochs[2].Joules = nil, nil
	if f := forecast.Left(w); f.Joules.Value != 120 || f.Spent.Low != 40 || f.Spent.Value != 80 || f.Spent.High <= 80 {
		t.Errorf("two epochs were not measured: left %+v, spent %+v", f.Joules, f.Spent)
	}
	w.Epochs[1].Source = tuning.Modelled
	if f := forecast.Left(w); f.JoulesSource != "rapl" || f.Spent.Low != 20 {
		t.Errorf("computed joules were added to measured ones: %+v by %s", f.Spent, f.JoulesSource)
	}
	w.Epochs[3].Joules = nil
	if f := forecast.Left(w); f.JoulesSource != tuning.Modelled {
		t.Errorf("by %s, want modelled", f.JoulesSource)
	}
	w.Epochs[1].Joules = nil
	if f := forecast.Left(w); f.Joules != nil || f.Spent != nil || f.JoulesSource != "" || f.Seconds == nil {
		t.Errorf("of joules that were not measured: %+v, spent %+v", f.Joules, f.Spent)
	}
}

func TestTheCurveSaysWhatTheLossIsHeadingFor(t *testing.T) {
	t.Parallel()
	epochs := worked(on(8), 2, 2, 2, 2, 2, 2, 2, 2)
	for i := range epochs {
		loss, quality := 1/float64(i+1), 1-1/float64(i+2)
		epochs[i].Loss, epochs[i].Quality = &loss, &quality
	}
	w := work(40, epochs...)
	if f := forecast.Left(w); f.Final != nil {
		t.Errorf("no one asked, and the %s ends at %+v", f.FinalOf, f.Final)
	}
	w.Curve = true
	f := forecast.Left(w)
	if f.Final == nil || f.FinalOf != "loss" || f.Final.Value > 0.125 || f.Final.Low > f.Final.Value || f.Final.Value > f.Final.High {
		t.Errorf("the %s ends at %+v", f.FinalOf, f.Final)
	}
	w.Direction = forecast.Max
	if f := forecast.Left(w); f.FinalOf != "quality" || f.Final.Value < 0.88 {
		t.Errorf("the %s ends at %+v", f.FinalOf, f.Final)
	}
	w.Epochs = worked(on(8), 2, 2)
	if f := forecast.Left(w); f.Final != nil || f.FinalOf != "" {
		t.Errorf("no one said anything, and the %s ends at %+v", f.FinalOf, f.Final)
	}
}

func TestAnEndedJobTeachesTheNext(t *testing.T) {
	t.Parallel()
	run := func(size float64, done int) forecast.Work {
		epochs := make([]tuning.Epoch, done)
		for i := range epochs {
			v := oddKind(size)(float64(i + 1))
			epochs[i] = tuning.Epoch{Number: i + 1, Loss: &v}
		}
		w := work(40, epochs...)
		w.Curve = true
		return w
	}
	var lessons []forecast.Lesson
	for i := range 12 {
		ended := run(1+0.01*float64(i%7), 40)
		ended.Lessons = lessons
		taught := ended.Teach()
		if len(taught) != len(forecast.Shares()) || taught[0].Of != "loss" || taught[0].Seen != 8 || taught[2].Seen != 20 {
			t.Fatalf("%+v", taught)
		}
		lessons = append(lessons, taught...)
	}
	truth := oddKind(1)(40)
	alone := forecast.Left(run(1, 12))
	taught := run(1, 12)
	taught.Lessons = lessons
	got := forecast.Left(taught)
	if a, b := math.Abs(alone.Final.Value-truth), math.Abs(got.Final.Value-truth); a < 0.5*truth || b > 0.05*truth {
		t.Errorf("off by %g alone and by %g after 12 jobs, of %g", a, b, truth)
	}
	for i := range lessons {
		lessons[i].Of = "quality"
	}
	taught.Lessons = lessons
	if other := forecast.Left(taught); *other.Final != *alone.Final {
		t.Errorf("what was learned of a quality counts for the loss: %+v, alone %+v", other.Final, alone.Final)
	}
	if short := run(1, 39); short.Teach() != nil {
		t.Errorf("a job that did not come to its end teaches %+v", short.Teach())
	}
}

func BenchmarkLongCurves(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5} {
		epochs := make([]tuning.Epoch, n)
		for i := range epochs {
			v := 1/math.Sqrt(float64(i+1)) + 0.001*math.Sin(float64(i))
			epochs[i] = tuning.Epoch{Number: i + 1, Loss: &v, Settings: on(8)}
		}
		w := work(2*n, epochs...)
		w.Curve = true
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if forecast.Left(w).Final == nil {
					b.Fatal("no forecast")
				}
			}
		})
	}
}

func BenchmarkLongForecasts(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5} {
		c := drawn(n, func(k float64) float64 { return 1/math.Sqrt(k) + 0.001*math.Sin(k) })
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				forecast.New(c, loss(float64(2*n)))
			}
		})
	}
}

// Where epochs are as long as they were up to chance, the interval holds the truth
// about as often as it says, and never less for the attempt's own difference.
func TestTheIntervalHoldsWhatItSays(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	held, jobs := 0, 2000
	for range jobs {
		shift := 0.04 * rng.NormFloat64()
		seen, rest := make([]float64, 6), 0.0
		for i := range seen {
			seen[i] = math.Exp(0.05 * rng.NormFloat64())
		}
		for range 30 {
			rest += math.Exp(shift + 0.05*rng.NormFloat64())
		}
		f := forecast.Left(work(36, worked(on(8), seen...)...))
		if f.Seconds.Low <= rest && rest <= f.Seconds.High {
			held++
		}
	}
	if share := float64(held) / float64(jobs); share < 0.75 || share > 0.95 {
		t.Errorf("the interval held the truth in %.2f of the jobs", share)
	}
}

func TestAForecastIsAlwaysAnIntervalThatCanBeStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.SliceOfN(rapid.Float64Range(0, 1e5), 0, 12).Draw(t, "seconds")
		w := work(rapid.IntRange(0, 40).Draw(t, "total"), worked(on(8), seconds...)...)
		for i := range w.Epochs {
			e := &w.Epochs[i]
			e.Warmup, e.Polluted = rapid.Bool().Draw(t, "warm-up"), rapid.Bool().Draw(t, "polluted")
			if rapid.Bool().Draw(t, "unmeasured") {
				e.Joules = nil
			}
			if rapid.Bool().Draw(t, "loss") {
				v := rapid.Float64().Draw(t, "value")
				e.Loss = &v
			}
		}
		w.Curve = true
		f := forecast.Left(w)
		for _, e := range []*tuning.Estimate{f.Epochs, f.Seconds, f.Joules, f.Spent, f.Final} {
			if e != nil && (!e.IsFinite() || e.Low > e.Value || e.Value > e.High) {
				t.Fatalf("no interval: %+v in %+v", e, f)
			}
		}
		if (f.Reason == "") != f.IsKnown() {
			t.Fatalf("reason %q, known %v", f.Reason, f.IsKnown())
		}
		// More epochs left never take less.
		if w.Total > 0 && f.IsKnown() {
			w.Total++
			if g := forecast.Left(w); g.Seconds.Value < f.Seconds.Value {
				t.Fatalf("%+v with one epoch more, %+v without", g.Seconds, f.Seconds)
			}
		}
	})
}
