package durations_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/durations"
)

// runs are jobs of two users: a's small ones take 100 s, b's large ones 10,000 s.
func runs() []durations.Ended {
	var out []durations.Ended
	for i := range 200 {
		e := durations.Ended{Features: durations.Features{User: "a", CPUs: 1, Submit: 1.6e9 + 1e5*float64(i)}, Duration: 100 + float64(i%10)}
		if i%2 == 1 {
			e.User, e.CPUs, e.Duration = "b", 64, 100*e.Duration
		}
		out = append(out, e)
	}
	return out
}

func TestAForecastFollowsWhatIsKnown(t *testing.T) {
	t.Parallel()
	m := durations.Fit(runs())
	for _, c := range []struct {
		name      string
		f         durations.Features
		low, high float64
		samples   int
	}{
		{"a user with habits", durations.Features{User: "a", CPUs: 1, Submit: 1.7e9}, 95, 115, 100},
		{"another one", durations.Features{User: "b", CPUs: 64, Submit: 1.7e9}, 9500, 11500, 100},
		{"an unknown user gets what is usual for a small job", durations.Features{User: "c", CPUs: 1, Submit: 1.7e9}, 95, 800, 0},
		{"and for a large one", durations.Features{User: "c", CPUs: 64, Submit: 1.7e9}, 1200, 11500, 0},
		{"no word is known", durations.Features{Submit: 1.7e9}, 100, 11000, 0},
	} {
		f := m.Predict(c.f)
		if f.Median < c.low || f.Median > c.high || f.Samples != c.samples {
			t.Errorf("%s: %g s by %d jobs, want %g to %g by %d", c.name, f.Median, f.Samples, c.low, c.high, c.samples)
		}
	}
}

func TestNothingIsKnownBeforeAJobEnded(t *testing.T) {
	t.Parallel()
	m := durations.New()
	for _, bad := range []durations.Ended{{Duration: math.NaN()}, {Duration: math.Inf(1)}, {Duration: -1}, {Features: durations.Features{Submit: math.NaN()}}} {
		m.Note(bad.Features)
		m.Learn(bad)
	}
	if f := m.Predict(durations.Features{User: "a"}); f.Known() || !math.IsNaN(f.Median+f.Mean+f.Quantile(0.5)) {
		t.Errorf("%g s is known", f.Median)
	}
	m.Learn(durations.Ended{Features: durations.Features{User: "a"}, Duration: 60})
	if f := m.Predict(durations.Features{User: "a"}); !f.Known() || math.Abs(f.Quantile(0.9)-60) > 1e-9 {
		t.Errorf("after a job of 60 s: %g s", f.Quantile(0.9))
	}
}

func TestAHabitThatChangesIsFollowed(t *testing.T) {
	t.Parallel()
	m := durations.Fit(runs())
	for i := range 60 {
		m.Learn(durations.Ended{Features: durations.Features{User: "a", CPUs: 1, Submit: 1.7e9 + 1e4*float64(i)}, Duration: 2000})
	}
	if f := m.Predict(durations.Features{User: "a", CPUs: 1, Submit: 1.8e9}); f.Quantile(0.8) < 1900 {
		t.Errorf("after 60 runs of 2000 s, 80 of 100 are said to end within %g s", f.Quantile(0.8))
	}
}

func TestTermsSayWhatMakesJobsLong(t *testing.T) {
	t.Parallel()
	found := map[string]float64{}
	for _, term := range durations.Fit(runs()).Terms() {
		for _, l := range term.Levels {
			found[term.Name+" "+l.Name] = l.Factor
		}
	}
	for level, long := range map[string]bool{"user a": false, "user b": true, "CPUs up to 63": false, "CPUs from 64": true} {
		if f, ok := found[level]; !ok || (f > 1.3) != long || (f < 0.7) == long {
			t.Errorf("%s is x%g of %v", level, f, found)
		}
	}
}

func TestWhatTwoFeaturesSayTogetherIsATermOfItsOwn(t *testing.T) {
	t.Parallel()
	var jobs []durations.Ended
	for i := range 400 { // long where group and account are alike
		f := durations.Features{Group: []string{"x", "y"}[i%2], Account: []string{"x", "y"}[i/2%2], Submit: 1.6e9 + 1e5*float64(i)}
		jobs = append(jobs, durations.Ended{Features: f, Duration: 100 + float64(i%10)})
		if f.Group == f.Account {
			jobs[i].Duration *= 50
		}
	}
	m := durations.Fit(jobs)
	if first := m.Terms()[0]; first.Name != "group and account" || len(first.Levels) != 4 || !strings.Contains(first.Levels[0].Name, ", ") {
		t.Errorf("the strongest term is %+v", first)
	}
	if f := m.Predict(durations.Features{Group: "x", Account: "y", Submit: 1.7e9}); f.Quantile(0.8) > 120 {
		t.Errorf("a short job is forecast to take up to %g s", f.Quantile(0.8))
	}
}

func TestForecastsAreSane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "a", "b", "c7\x1b"})
		size := rapid.IntRange(-1, 4)
		features := rapid.Custom(func(t *rapid.T) durations.Features {
			return durations.Features{
				User: word.Draw(t, "user"), Group: word.Draw(t, "group"), Account: word.Draw(t, "account"), Name: word.Draw(t, "name"),
				CPUs: size.Draw(t, "cpus"), GPUs: size.Draw(t, "gpus"), Nodes: size.Draw(t, "nodes"), Limit: float64(size.Draw(t, "limit")) * 600,
				Submit: rapid.Float64Range(0, 1e7).Draw(t, "submit"),
			}
		})
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) durations.Ended {
			return durations.Ended{Features: features.Draw(t, "job"), Duration: rapid.Float64Range(0, 1e6).Draw(t, "duration"), End: rapid.Float64Range(0, 2e7).Draw(t, "end")}
		}), 1, 150).Draw(t, "jobs")
		of, least, most := features.Draw(t, "of"), math.Inf(1), 1.0
		for _, j := range jobs {
			least, most = min(least, max(1, j.Duration)), max(most, j.Duration)
		}
		m := durations.Fit(jobs)
		f := m.Predict(of)
		before := least / 1.001
		for q := range 101 {
			x := f.Quantile(float64(q) / 100)
			if !(x >= before) || x > 1.001*most {
				t.Fatalf("quantile %d is %g after %g, jobs took %g to %g", q, x, before, least, most)
			}
			before = x
		}
		if f.Median != f.Quantile(0.5) || !(f.Mean >= least/1.001 && f.Mean <= 1.001*most) {
			t.Fatalf("median %g, mean %g of %g to %g", f.Median, f.Mean, least, most)
		}
		if again := durations.Fit(jobs).Predict(of); again != f {
			t.Fatal("the same jobs make another forecast")
		}
		for _, term := range m.Terms() {
			if slices.ContainsFunc(term.Levels, func(l durations.Level) bool {
				return !(l.Factor > 0) || strings.TrimSpace(l.Name) == "" || strings.Contains(l.Name, "\x1b")
			}) {
				t.Fatalf("%v", term)
			}
		}
	})
}

func TestAFactorOnAllDurationsIsOneOnTheForecast(t *testing.T) {
	t.Parallel()
	jobs := site(2, 1000)
	longer := slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Duration += 10 // below 1 s all is 1 s
		jobs[i].End += 1e4
		longer[i] = jobs[i]
		longer[i].Duration *= 3
	}
	for i := range jobs { // when they end stays
		jobs[i].End += 3e5
		longer[i].End = jobs[i].End
	}
	a, b := durations.Fit(jobs), durations.Fit(longer)
	within := 0
	for _, j := range jobs {
		j.Submit += 1e7
		if r := b.Predict(j.Features).Quantile(0.9) / a.Predict(j.Features).Quantile(0.9); r > 2 && r < 4 {
			within++
		}
	}
	if within < 950 { // the bins of like length begin elsewhere
		t.Errorf("%d of 1000 upper quantiles are about three times as long", within)
	}
}
