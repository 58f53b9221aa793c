package tuning_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
)

func TestWhatASearchVariesAndWhatItsTrialsKeep(t *testing.T) {
	t.Parallel()
	policy := tuning.DefaultPolicy()
	policy.Mode = tuning.Apply
	policy.Quality = &tuning.Quality{Direction: "max", Measures: []string{tuning.ByQuality, tuning.ByEnergy}}
	policy.Knobs = []tuning.Knob{
		{Name: tuning.Cores, Values: numbers(1, 2)},
		{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores},
		{Name: tuning.Memory, Min: tuning.Number(1), Max: tuning.Number(2)},
		{Name: tuning.PowerLimit, Values: numbers(100, 200)},
		{Name: "prefetch", Env: "PREFETCH", Values: numbers(0, 1), Quality: tuning.QualitySame},
		{Name: "lr", Arg: "--lr", Values: numbers(1, 2)},
		{Name: "momentum", Env: "M", Values: numbers(1, 2), When: &tuning.Condition{Knob: "lr", Value: tuning.Number(1)}},
		{Name: "warmup", Env: "W", Follows: "lr"},
	}
	system := []string{tuning.Cores, tuning.Threads, tuning.Memory, tuning.PowerLimit, "prefetch"}
	for _, c := range []struct {
		name         string
		search       *tuning.Search
		varied, kept []string
		mode         tuning.Mode
	}{
		{"a job without a search keeps all", nil, nil, append(system, "lr", "momentum", "warmup"), tuning.Apply},
		{"system knobs are tuned inside the trials", &tuning.Search{System: tuning.Pipelined}, []string{"lr", "momentum"}, system, tuning.Apply},
		{"system knobs stay", &tuning.Search{System: tuning.Fixed}, []string{"lr", "momentum"}, system, tuning.Observe},
		{
			"system knobs that are found out by trying are searched too", &tuning.Search{System: tuning.Searched},
			[]string{tuning.Cores, "prefetch", "lr", "momentum"},
			[]string{tuning.Memory, tuning.PowerLimit},
			tuning.Observe,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := policy
			p.Search = c.search
			if diff := cmp.Diff(c.varied, names(p.Searched())); diff != "" {
				t.Errorf("varied (-want +got):\n%s", diff)
			}
			trial := p.Trial()
			if diff := cmp.Diff(c.kept, names(trial.Knobs)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if trial.Search != nil || trial.Mode != c.mode || c.search != nil && trial.Quality.Measures != nil {
				t.Errorf("the policy of a trial is %+v", trial)
			}
			if len(policy.Knobs) != 8 || len(policy.Quality.Measures) != 2 {
				t.Errorf("the policy of the search became %+v", policy)
			}
		})
	}
}

func names(knobs []tuning.Knob) (out []string) {
	for _, k := range knobs {
		out = append(out, k.Name)
	}
	return out
}

func TestATrialLikelyRunsToItsNextRungAndOneOfEtaGoesOn(t *testing.T) {
	t.Parallel()
	p := tuning.Policy{Search: &tuning.Search{Method: tuning.ASHA, MinEpochs: 1, Eta: 3}}
	for done, want := range map[int]float64{0: 1 + 2./3 + 6./9, 1: 2 + 6./3, 2: 1 + 6./3, 3: 6, 8: 1, 9: 0} {
		if got := p.Trial().Likely(done, 9); math.Abs(got-want) > 1e-12 {
			t.Errorf("after %d of 9 epochs: %g, want %g", done, got, want)
		}
	}
	whole := tuning.Policy{Search: &tuning.Search{Method: tuning.Random, Eta: 3}}
	if got := whole.Trial().Likely(2, 9); got != 7 {
		t.Errorf("a trial that no rung ends: %g, want 7", got)
	}
	if p.Likely(2, 9) != 0 || p.Trial().Likely(2, 0) != 0 {
		t.Error("a job that is no trial, and one whose epochs are unknown, want 0")
	}
}
