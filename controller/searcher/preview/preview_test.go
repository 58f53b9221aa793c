package preview_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func plan(method tuning.SearchMethod, change ...func(*searcher.Plan)) searcher.Plan {
	p := searcher.Plan{Search: tuning.DefaultSearch()}
	p.Method, p.Search.Trials, p.Epochs, p.Seed = method, 64, 81, 7
	for range 100 {
		p.Settings = append(p.Settings, tuning.Settings{})
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func resumes(p *searcher.Plan) { p.Resumes = true }

// values are what trials reach: share of it is luck that stays with the trial.
func values(share float64, rng *rand.Rand) func(*searcher.Trial, int) preview.Epoch {
	luck := map[int]float64{}
	return func(t *searcher.Trial, epoch int) preview.Epoch {
		if _, drawn := luck[t.Number]; !drawn {
			luck[t.Number] = rng.NormFloat64()
		}
		value := share*luck[t.Number] + (1-share)*rng.NormFloat64() - 1/float64(epoch)
		return preview.Epoch{Value: value, Seconds: 10 * math.Exp(0.2*rng.NormFloat64()), Cores: 2}
	}
}

func TestThePreviewExpectsTheEpochsThatSearchesRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		plan searcher.Plan
	}{
		{"asha", plan(tuning.ASHA)},
		{"asha with checkpoints", plan(tuning.ASHA, resumes)},
		{"asha, one trial at a time", plan(tuning.ASHA, func(p *searcher.Plan) { p.Parallel = 1 })},
		{"asha, eta 4", plan(tuning.ASHA, func(p *searcher.Plan) { p.Eta = 4 })},
		{"hyperband", plan(tuning.Hyperband)},
		{"random", plan(tuning.Random)},
		{"grid", plan(tuning.Grid)},
		{"a budget", plan(tuning.ASHA, func(p *searcher.Plan) { p.Time = 20 * time.Minute })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seconds := exactly(10)
			got, err := preview.Of(tc.plan, preview.Estimate{Seconds: &seconds, Cores: 2, Start: 5})
			if err != nil {
				t.Fatal(err)
			}
			for _, share := range []float64{0.4, 0.6, 0.9} { // from values that mostly are luck to those that hardly change
				sum, end := 0.0, 0.0
				const searches = 40
				for seed := range uint64(searches) {
					p := tc.plan
					p.Seed = seed
					s, err := preview.Play(p, preview.Cluster{Start: 5, Every: p.Time > 0, Epoch: values(share, rand.New(rand.NewPCG(seed, 5)))})
					if err != nil {
						t.Fatal(err)
					}
					last := 0.0
					for _, trial := range s.Trials {
						sum += float64(trial.Last().Epoch) / searches
						last = max(last, trial.Last().At)
					}
					end += last / searches
				}
				if off := got.Epochs.Mean/sum - 1; math.Abs(off) > 0.15 {
					t.Errorf("with a share of %g the preview expects %.0f epochs, searches run %.0f: %+.0f %%", share, got.Epochs.Mean, sum, 100*off)
				}
				if off := got.Seconds.Mean/end - 1; math.Abs(off) > 0.2 {
					t.Errorf("with a share of %g the preview expects %.0f s, searches take %.0f: %+.0f %%", share, got.Seconds.Mean, end, 100*off)
				}
			}
		})
	}
}

func TestAPreviewAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	known := preview.Estimate{Seconds: &preview.Range{Mean: 40, Low: 30, High: 55}, Joules: &preview.Range{Mean: 900, Low: 600, High: 1300}, Cores: 2, Start: 20}
	target := 0.98
	for _, tc := range []struct {
		name     string
		plan     searcher.Plan
		estimate preview.Estimate
	}{
		{"asha", plan(tuning.ASHA), known},
		{"start-unknown", plan(tuning.ASHA), preview.Estimate{Seconds: known.Seconds}},
		{"hyperband", plan(tuning.Hyperband), known},
		{"random-unknown", plan(tuning.Random), preview.Estimate{}},
		{"target", plan(tuning.Grid, func(p *searcher.Plan) { p.Search.Trials, p.Target = 9, &target }), known},
		{"budget", plan(tuning.ASHAGP, func(p *searcher.Plan) { p.Energy = 100_000 }), known},
		{"modelled", plan(tuning.ASHA, func(p *searcher.Plan) { p.Energy = 100_000 }), preview.Estimate{Joules: known.Joules, Unenforced: true}},
		{"no-time-budget-without-seconds", plan(tuning.ASHA, func(p *searcher.Plan) { p.Time = time.Second }), preview.Estimate{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := preview.Of(tc.plan, tc.estimate)
			if err != nil {
				t.Fatal(err)
			}
			got, file := preview.Text(p), filepath.Join("testdata", tc.name+".txt")
			fixtures.Golden(t, *update, file, got)
		})
	}
}

func TestOfTrialsOfUnknownLengthAPreviewSaysThat(t *testing.T) {
	t.Parallel()
	p, err := preview.Of(plan(tuning.ASHA, func(p *searcher.Plan) { p.Epochs = 0 }), preview.Estimate{Seconds: new(exactly(3)), Cores: 2})
	if err != nil || len(p.Rungs) > 0 || p.Epochs != nil || p.Seconds != nil || p.CoreHours != nil {
		t.Fatalf("%+v (%v), want that nothing is known", p, err)
	}
	if text := preview.Text(p); !strings.HasPrefix(text, "Time: unknown\nEnergy: unknown\nCore-hours: unknown\nThe epochs of a trial are unknown") {
		t.Errorf("it says\n%s", text)
	}
}

func TestNoPreviewExceedsItsMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := plan(rapid.SampledFrom(tuning.SearchMethods()).Draw(t, "method"))
		p.Search.Trials = rapid.IntRange(1, 20).Draw(t, "trials")
		p.Epochs, p.MinEpochs = rapid.IntRange(1, 30).Draw(t, "epochs"), rapid.IntRange(0, 4).Draw(t, "least")
		p.Parallel, p.Eta, p.Resumes = rapid.IntRange(1, 8).Draw(t, "parallel"), rapid.IntRange(2, 4).Draw(t, "eta"), rapid.Bool().Draw(t, "resumes")
		seconds := exactly(3)
		got, err := preview.Of(p, preview.Estimate{Seconds: &seconds, Cores: 4})
		if err != nil {
			t.Fatal(err)
		}
		before := float64(p.Search.Trials)
		for _, r := range got.Rungs {
			if r.Trials.Low > r.Trials.Mean+1e-9 || r.Trials.Mean > before+1e-9 || r.Trials.High > float64(r.Most) {
				t.Errorf("rung %+v of trials %g", r, before)
			}
			before = r.Trials.Mean
		}
		if got.Epochs.High > float64(got.Most) {
			t.Errorf("%+v epochs of %d", got.Epochs, got.Most)
		}
		if want := got.Epochs.Mean * 3 * 4 / 3600; math.Abs(got.CoreHours.Mean-want) > 1e-9*want {
			t.Errorf("%g core-hours, want %g", got.CoreHours.Mean, want)
		}
		if least := got.Epochs.Mean * 3 / float64(p.Parallel); got.Seconds.Mean < least-1e-9 {
			t.Errorf("%g s, want %g at least", got.Seconds.Mean, least)
		}
	})
}

func TestASimulatedTrialFailsAndDivergesAsItIsTold(t *testing.T) {
	t.Parallel()
	s, err := preview.Play(plan(tuning.Random, func(p *searcher.Plan) { p.Search.Trials = 3 }), preview.Cluster{
		Epoch: func(t *searcher.Trial, epoch int) preview.Epoch {
			joules := 2.0
			e := preview.Epoch{Value: 1, Seconds: 1, Joules: &joules, Fails: t.Number == 1 && epoch == 2}
			if t.Number == 2 && epoch == 3 {
				e.Value = math.NaN()
			}
			return e
		}, Every: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := tuning.Each(s.Trials, func(t searcher.Trial) searcher.State { return t.State })
	if diff := cmp.Diff([]searcher.State{searcher.Failed, searcher.Diverged, searcher.Done}, got); diff != "" {
		t.Error(diff)
	}
	if joules, _, _ := s.Spent(); joules != 2*(1+3+81) {
		t.Errorf("%g J", joules)
	}
}

func BenchmarkOf(b *testing.B) {
	p := plan(tuning.ASHA, func(p *searcher.Plan) { p.Search.Trials, p.Parallel = 1000, 50 })
	p.Settings = make([]tuning.Settings, 4000)
	for b.Loop() {
		if _, err := preview.Of(p, preview.Estimate{}); err != nil {
			b.Fatal(err)
		}
	}
}

func exactly(v float64) preview.Range { return preview.Range{Mean: v, Low: v, High: v} }
