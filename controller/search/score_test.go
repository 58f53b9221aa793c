package search

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitchpipe/controller/tuning"
)

func trialOf(coreCount, seconds, joules float64) tuning.Trial {
	t := tuning.Trial{
		Settings: tuning.Settings{tuning.Cores: tuning.Number(coreCount)}, Epochs: 2, Seconds: seconds, SDLog: .02, Source: "rapl",
		Reference: coreCount == 1,
	}
	if joules > 0 {
		t.Joules = new(tuning.Joules(joules))
	}
	return t
}

func TestWhatTheOwnerWouldAccept(t *testing.T) {
	t.Parallel()
	ref := trialOf(1, 10, 100)
	ref.Quality, ref.QualityOf = new(.9), 7
	with := func(f func(*tuning.Trial)) tuning.Trial { c := trialOf(2, 10.5, 50); f(&c); return c }
	quality := func(q float64) func(*tuning.Trial) {
		return func(t *tuning.Trial) {
			t.Settings, t.Quality, t.QualityOf = t.Settings.With("batch", tuning.Number(64)), new(q), 8
		}
	}
	plain := policy()
	slow := policy()
	slow.MaxSlowdown = 1.02
	tight := policy()
	tight.MaxSlowdown = 1.049
	minimised := guarded(policy())
	minimised.Quality.Direction = "min"
	following := policy(tuning.Knob{Name: "workers", Follows: tuning.Cores})
	tests := []struct {
		name  string
		trial tuning.Trial
		p     tuning.Policy
		want  bool
	}{
		{"a system knob is usable", with(func(*tuning.Trial) {}), plain, true},
		{"surely slower than allowed is not usable", with(func(t *tuning.Trial) { t.Seconds, t.Epochs = 12, 10 }), slow, false},
		{"one that may be as fast as allowed is", with(func(*tuning.Trial) {}), tight, true},
		{"a failed trial is not usable", with(func(t *tuning.Trial) { t.Failed = true }), plain, false},
		{"a hyperparameter without a guard is not usable", with(quality(.95)), plain, false},
		{"a knob that only follows the cores needs no guard", with(func(t *tuning.Trial) { t.Settings["workers"] = tuning.Number(2) }), following, true},
		{"a hyperparameter that keeps the quality is usable", with(quality(.895)), guarded(policy()), true},
		{"a hyperparameter that spoils the quality is not usable", with(quality(.85)), guarded(policy()), false},
		{"one of an earlier epoch than the owner's spoils nothing", with(func(t *tuning.Trial) { quality(.85)(t); t.QualityOf = 3 }), guarded(policy()), true},
		{"a quality that is better when smaller", with(quality(.85)), minimised, true},
		{"worse when larger", with(quality(.95)), minimised, false},
		{"an unknown quality does not stand in the way", with(func(t *tuning.Trial) { quality(0)(t); t.Quality = nil }), guarded(policy()), true},
	}
	for _, tt := range tests {
		if got := Refusal(tt.trial, ref, tt.p); (got == tuning.ReasonNone) != tt.want {
			t.Errorf("%s: refused for %q", tt.name, got)
		}
	}
}

func TestBetterPicksTheBestUsableTrial(t *testing.T) {
	t.Parallel()
	ref := trialOf(1, 10, 100)
	trials := []tuning.Trial{ref, trialOf(2, 6, 90), trialOf(4, 4, 110), trialOf(8, 12, 40)}
	tests := []struct {
		name string
		p    func(*tuning.Policy)
		want float64 // cores
	}{
		{"for time", func(*tuning.Policy) {}, 4},
		{"for energy", func(p *tuning.Policy) { p.Objective = tuning.Energy }, 8},
		{"for energy without getting slower", func(p *tuning.Policy) { p.Objective = tuning.Energy; p.MaxSlowdown = 1.1 }, 2},
	}
	for _, tt := range tests {
		p := policy()
		tt.p(&p)
		got, ok := Better(trials, ref, p)
		if !ok || got.Trial.Settings[tuning.Cores].Float() != tt.want || !got.Clear || got.Expected < got.LogRatio {
			t.Errorf("%s: %+v, %t, want %g cores and a clear gain", tt.name, got, ok, tt.want)
		}
	}
	if got, ok := Better([]tuning.Trial{ref}, ref, policy()); ok {
		t.Errorf("of the reference alone: %+v", got)
	}
	if got, ok := (Study{Policy: policy(), Trials: trials[1:]}).Best(); ok {
		t.Errorf("without a reference: %+v", got)
	}
}

// Six probes of nothing must not look like a gain: the best of them is clear of
// noise in at most 5 % of the jobs, and expected to bring nearly nothing.
func TestTheBestOfManyEqualTrialsIsRarelyClear(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	const jobs, noise = 4000, .05
	measure := func(cores float64) tuning.Trial {
		tr := trialOf(cores, 1, 0)
		a, b := noise*rng.NormFloat64(), noise*rng.NormFloat64()
		tr.Seconds = math.Exp((a + b) / 2)
		tr.SDLog = math.Abs(a-b) / math.Sqrt2
		return tr
	}
	won := 0
	var raw, shrunk float64
	for range jobs {
		trials := make([]tuning.Trial, 0, 7)
		for c := range 7 {
			trials = append(trials, measure(float64(c+1)))
		}
		g, ok := Better(trials, trials[0], policy())
		if !ok {
			t.Fatal("no best trial")
		}
		if g.Clear {
			won++
		}
		raw += g.LogRatio / jobs
		shrunk += g.Expected / jobs
	}
	t.Logf("clear in %d of %d jobs; measured %.4f, expected %.4f", won, jobs, raw, shrunk)
	if won > jobs*6/100 {
		t.Errorf("a gain was clear in %d of %d jobs without any effect", won, jobs)
	}
	if shrunk < raw/2 {
		t.Errorf("expected gain %.4f, measured %.4f: the luck of choosing is still in it", shrunk, raw)
	}
}

func TestALargeGainIsClearAfterTwoEpochs(t *testing.T) {
	t.Parallel()
	ref := trialOf(1, 10, 0)
	g, ok := Better([]tuning.Trial{ref, trialOf(2, 7, 0), trialOf(4, 9, 0)}, ref, policy())
	if !ok || !g.Clear || g.Candidates != 2 {
		t.Errorf("%+v, %t, want a clear gain among 2", g, ok)
	}
}
