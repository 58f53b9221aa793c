package replay_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/tuning"
)

// cluster is settings of cores and memory.
func cluster() []tuning.Settings {
	var out []tuning.Settings
	for _, c := range []float64{1, 2, 3, 4, 6, 8, 12, 16, 24} {
		for _, m := range []float64{1, 4, 16} {
			out = append(out, tuning.Settings{tuning.Cores: tuning.Number(c), tuning.Memory: tuning.Number(m * (1 << 30))})
		}
	}
	return out
}

// farm is settings of nodes, workers and the batch of one.
func farm() []tuning.Settings {
	var out []tuning.Settings
	for _, n := range []float64{1, 2, 4, 8} {
		for _, each := range []float64{1, 2, 4} {
			for _, b := range []float64{16, 64, 256} {
				out = append(out, tuning.Settings{
					"nodes": tuning.Number(n), "replicas": tuning.Number(n * each), "local_batch_size": tuning.Number(b),
				})
			}
		}
	}
	return out
}

func shared(s tuning.Settings) float64 { // work that cores share, up to eight of them
	return 0.2 + 3/min(s[tuning.Cores].Float(), 8)
}

func spread(s tuning.Settings) float64 { // in the manner of Optimus
	t := 0.05 + 0.002*s["local_batch_size"].Float()
	if s["nodes"].Float() > 1 {
		t += 0.1 + 0.004*s["replicas"].Float()
	}
	return t
}

// explore measures a budget of settings as the space asks for them.
func explore(t testing.TB, settings []tuning.Settings, truth func(tuning.Settings) float64, budget int) (*replay.Space, map[int]float64, []float64) {
	t.Helper()
	space := replay.NewSpace(settings)
	samples := map[int]float64{}
	for range budget {
		i, ok := space.Next(samples, budget, func(_ int, seconds float64) float64 { return 1 / seconds })
		if !ok {
			break
		}
		samples[i] = truth(settings[i])
	}
	forecast, err := space.Forecast(samples)
	if err != nil {
		t.Fatal(err)
	}
	return space, samples, forecast
}

func TestSettingsThatWereNotMeasuredAreForecast(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		settings []tuning.Settings
		truth    func(tuning.Settings) float64
		most     float64
	}{
		{"where cores share the work up to eight of them", cluster(), shared, 0.10},
		{"where workers on several nodes talk", farm(), spread, 0.10},
		{"where nothing matters", cluster(), func(tuning.Settings) float64 { return 7 }, 1e-3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, samples, forecast := explore(t, tc.settings, tc.truth, 8)
			var sum float64
			for i, s := range tc.settings {
				seconds := forecast[i]
				if _, measured := samples[i]; !(seconds > 0) || math.IsInf(seconds, 1) || measured && seconds != tc.truth(s) {
					t.Errorf("%s: %g, truly %g", s, seconds, tc.truth(s))
				}
				sum += math.Abs(seconds-tc.truth(s)) / tc.truth(s)
			}
			if mean := sum / float64(len(tc.settings)); mean > tc.most {
				t.Errorf("mean error %.3f, want at most %.3f", mean, tc.most)
			}
		})
	}
}

func TestWhatDoesNotFitFailsWithLessMemoryToo(t *testing.T) {
	t.Parallel()
	settings := cluster()
	at := func(cores, gib float64) int {
		want := tuning.Settings{tuning.Cores: tuning.Number(cores), tuning.Memory: tuning.Number(gib * (1 << 30))}
		return slices.IndexFunc(settings, want.Equal)
	}
	forecast, err := replay.NewSpace(settings).Forecast(map[int]float64{at(8, 4): math.Inf(1), at(8, 16): 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at    int
		fails bool
	}{{at(8, 4), true}, {at(2, 4), true}, {at(24, 1), true}, {at(24, 16), false}} {
		if math.IsInf(forecast[tc.at], 1) != tc.fails {
			t.Errorf("%s: fails is %t", settings[tc.at], !tc.fails)
		}
	}
}

func TestBadSamplesAreRefused(t *testing.T) {
	t.Parallel()
	space := replay.NewSpace(cluster())
	for _, tc := range []struct {
		name    string
		samples map[int]float64
	}{
		{"none", nil},
		{"none that ran", map[int]float64{0: math.Inf(1)}},
		{"of no time", map[int]float64{0: 0}},
		{"of no number", map[int]float64{0: math.NaN()}},
		{"of less than no time", map[int]float64{0: -1, 1: 1}},
	} {
		if _, err := space.Forecast(tc.samples); !errors.Is(err, replay.ErrSamples) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestTheSettingsMeasuredAreOffTheDiagonalAndNotTheLeastMemory(t *testing.T) {
	t.Parallel()
	settings := cluster()
	_, samples, _ := explore(t, settings, shared, 6)
	few, many := false, false
	for i := range samples {
		c, m := settings[i][tuning.Cores].Float(), settings[i][tuning.Memory].Float()/(1<<30)
		if m == 1 {
			t.Errorf("%s has the least memory", settings[i])
		}
		few = few || c <= 3 && m == 16
		many = many || c >= 12 && m == 4
	}
	if !few || !many {
		t.Errorf("few cores with much memory: %t; many with little: %t", few, many)
	}
}

func TestEverySettingIsAskedForOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// Some may say their cores and others their workers.
		settings := rapid.SampledFrom([][]tuning.Settings{cluster(), farm(), slices.Concat(cluster()[:5], farm()[:5]), slices.Concat(farm()[:5], cluster()[:5])}).Draw(rt, "kinds")
		settings = settings[:rapid.IntRange(1, len(settings)).Draw(rt, "settings")]
		space := replay.NewSpace(settings)
		asked := map[int]bool{}
		samples := map[int]float64{}
		for {
			i, ok := space.Next(samples, 8, func(_ int, seconds float64) float64 { return 1 / seconds })
			if !ok {
				break
			}
			if asked[i] {
				rt.Fatalf("setting %d is asked for again", i)
			}
			asked[i] = true
			samples[i] = rapid.Float64Range(0.01, 100).Draw(rt, "seconds")
			if rapid.IntRange(0, 5).Draw(rt, "fails") == 0 {
				samples[i] = math.Inf(1)
			}
		}
		if len(asked) != len(settings) {
			rt.Fatalf("%d of %d settings were asked for", len(asked), len(settings))
		}
		if _, err := space.Forecast(samples); err != nil && !errors.Is(err, replay.ErrSamples) {
			rt.Fatal(err)
		}
	})
}

func TestOtherUnitsOfTimeScaleTheForecast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		settings := cluster()
		if rapid.Bool().Draw(t, "farm") {
			settings = farm()
		}
		space := replay.NewSpace(settings)
		scale := rapid.SampledFrom([]float64{1e-3, 60, 1e6}).Draw(t, "scale")
		a, b := map[int]float64{}, map[int]float64{}
		for range rapid.IntRange(1, 10).Draw(t, "samples") {
			i := rapid.IntRange(0, len(settings)-1).Draw(t, "setting")
			a[i] = rapid.Float64Range(0.01, 100).Draw(t, "seconds")
			b[i] = a[i] * scale
		}
		m, err := space.Forecast(a)
		n, also := space.Forecast(b)
		if err != nil || also != nil {
			t.Fatal(err, also)
		}
		for i, s := range settings {
			x, y := m[i], n[i]
			if !(x > 0) || math.IsInf(x, 0) || math.Abs(x*scale-y) > 1e-3*y {
				t.Fatalf("%s: %g becomes %g", s, x, y)
			}
		}
	})
}

func BenchmarkFitAndForecast(b *testing.B) {
	space, samples, _ := explore(b, farm(), spread, 8)
	for b.Loop() {
		if _, err := space.Forecast(samples); err != nil {
			b.Fatal(err)
		}
	}
}
