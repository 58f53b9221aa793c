package respond_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

func cores(n float64) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(n)} }

// policy lets cores and one more knob move.
func policy(o tuning.Objective) tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Objective = o
	p.Knobs = []tuning.Knob{{Name: tuning.Cores}, {Name: tuning.Threads, Follows: tuning.Cores}, {Name: "power_cap"}}
	return p
}

// amdahl is the time of an epoch on n cores; a share of it runs in parallel.
func amdahl(parallel, n float64) float64 { return 1 - parallel + parallel/n }

func TestPredictionsFollowAmdahl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		parallel float64
		own, to  float64
	}{
		{"from many cores to few", 0.5, 8, 2},
		{"from few to many", 0.9, 2, 4},
		{"of serial work", 0, 16, 1},
		{"of work that is nearly all parallel", 0.99, 32, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := respond.New(respond.Facts{
				Policy: policy(tuning.Time), Own: cores(c.own), Usage: &respond.Usage{Cores: c.own, Busy: 1 / amdahl(c.parallel, c.own)},
			})
			got, want := m.Predict(cores(c.to)).Time, math.Log(amdahl(c.parallel, c.to)/amdahl(c.parallel, c.own))
			if math.Abs(got.Mean-want) > max(0.12, 2*got.SD) {
				t.Errorf("predicted %+v, want %g", got, want)
			}
		})
	}
}

func TestWhatWasSeenAtOneSettingSharpensTheOthers(t *testing.T) {
	t.Parallel()
	own := tuning.Trial{Settings: cores(8), Epochs: 10, Seconds: 1, Reference: true}
	half := tuning.Trial{Settings: cores(4), Epochs: 10, Seconds: amdahl(0.9, 4) / amdahl(0.9, 8)}
	f := respond.Facts{Policy: policy(tuning.Time), Own: cores(8), Trials: []tuning.Trial{own}}
	before := respond.New(f).Predict(cores(2)).Time
	f.Trials = append(f.Trials, half)
	after := respond.New(f).Predict(cores(2)).Time
	want := math.Log(amdahl(0.9, 2) / amdahl(0.9, 8))
	if after.SD >= 0.7*before.SD || math.Abs(after.Mean-want) > 3*after.SD {
		t.Errorf("before %+v, after %+v, want %g", before, after, want)
	}
	power := func(watts float64) tuning.Settings {
		s := cores(8)
		s["power_cap"] = tuning.Number(watts)
		return s
	}
	joules := func(v float64) *tuning.Joules { j := tuning.Joules(v); return &j }
	capped := respond.Facts{Policy: policy(tuning.Energy), Own: power(200), Trials: []tuning.Trial{
		{Settings: power(200), Epochs: 10, Seconds: 1, Joules: joules(100), Reference: true},
		{Settings: power(150), Epochs: 10, Seconds: 1.3, Joules: joules(120)},
	}}
	if got := respond.New(capped).Predict(power(100)).Objective; got.Mean < 0 {
		t.Errorf("a lower cap that cost joules is hoped for again: %+v", got)
	}
}

func TestARunWithOtherCoresIsAHintAndNoMore(t *testing.T) {
	t.Parallel()
	f := respond.Facts{Policy: policy(tuning.Time), Own: cores(32), Usage: &respond.Usage{Cores: 32, Busy: 31.9}}
	after := func(ratio float64) respond.Ratio {
		f.Others = []tuning.Effect{{From: cores(16), Settings: cores(32), LogTime: math.Log(ratio), Runs: 1, Between: true}}
		return respond.New(f).Predict(cores(16)).Time
	}
	alone := respond.New(f).Predict(cores(16)).Time
	if flat := after(1); flat.Mean > 0.75*alone.Mean || flat.Quantile(1.6449) < 0.3 {
		t.Errorf("16 cores were as fast: %+v, alone %+v", flat, alone)
	}
	if other := after(10); math.Abs(other.Mean-alone.Mean) > 0.02 {
		t.Errorf("another input says something: %+v, alone %+v", other, alone)
	}
}

func TestSpinningIsNotTakenForWork(t *testing.T) {
	t.Parallel()
	busy := func(used float64) respond.Ratio {
		return respond.New(respond.Facts{Policy: policy(tuning.Time), Own: cores(8), Usage: &respond.Usage{Cores: 8, Busy: used}}).Predict(cores(4)).Time
	}
	if all, few := busy(7.9), busy(2); all.SD < 2*few.SD {
		t.Errorf("at full use %+v is as sure as at low use %+v", all, few)
	}
	one := respond.New(respond.Facts{Policy: policy(tuning.Time), Own: cores(1), Usage: &respond.Usage{Cores: 1, Busy: 1}}).Predict(cores(2))
	if !(one.Time.Mean < 0) || one.Time.Quantile(1.6449) < 0 {
		t.Errorf("a busy core shows for sure that a second one helps: %+v", one)
	}
}

func TestThreadsThatAProgramChose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		usage  *respond.Usage
		faster bool // with a thread per core, perhaps
	}{
		{"many that wait for a core", &respond.Usage{Cores: 4, Busy: 3.8, Threads: 4, Pressure: 0.9}, true},
		{"many that wait for each other, where nothing tells of cores", &respond.Usage{Cores: 4, Busy: 3.8, Threads: 4, Switches: 5000}, true},
		{"many of which most sleep", &respond.Usage{Cores: 4, Busy: 3.8, Threads: 4, Switches: 300}, false},
		{"many that wait for storage", &respond.Usage{Cores: 4, Busy: 0.4, Threads: 4, Switches: 5000}, false},
		{"one that works on four cores", &respond.Usage{Cores: 4, Busy: 1, Threads: 0.25}, true},
		{"one that sleeps", &respond.Usage{Cores: 4, Busy: 0.2, Threads: 0.25}, false},
		{"one for each core", &respond.Usage{Cores: 4, Busy: 3.8, Threads: 1, Pressure: 0.9}, false},
		{"an unknown number", &respond.Usage{Cores: 4, Busy: 3.8, Pressure: 0.9}, false},
		{"of unknown use", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := respond.New(respond.Facts{Policy: policy(tuning.Time), Own: cores(4), Usage: c.usage})
			got := m.Predict(cores(4).With(tuning.Threads, tuning.Number(4))).Time
			if c.faster != (got.Mean < 0) || c.faster && got.Quantile(1.6449) < 0 {
				t.Errorf("a thread per core: %+v, want it faster, and not for sure: %t", got, c.faster)
			}
		})
	}
}

func TestSeveralVariablesOfTheSameThreadsAreOneChange(t *testing.T) {
	t.Parallel()
	p, all := policy(tuning.Time), cores(4)
	p.Knobs = p.Knobs[:1]
	var got []respond.Ratio
	for _, name := range []string{tuning.Threads, "mkl", "blas"} {
		p.Knobs, all = append(p.Knobs, tuning.Knob{Name: name, Follows: tuning.Cores}), all.With(name, tuning.Number(4))
		m := respond.New(respond.Facts{Policy: p, Own: cores(4), Usage: &respond.Usage{Cores: 4, Busy: 3.8, Threads: 4, Pressure: 0.9}})
		got = append(got, m.Predict(all).Time)
	}
	if got[0] != got[1] || got[1] != got[2] {
		t.Errorf("one, two and three variables: %+v", got)
	}
}

func TestEveryPredictionIsFinite(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) float64 {
			return rapid.SampledFrom([]float64{0, 1e-300, 0.5, 1, 2, 64, 1e300, math.NaN(), math.Inf(1)}).Draw(t, name)
		}
		f := respond.Facts{
			Policy: policy(rapid.SampledFrom(tuning.Objectives()).Draw(t, "objective")), Own: cores(float64(rapid.IntRange(1, 64).Draw(t, "own"))),
			Usage: &respond.Usage{Cores: 8, Busy: number("busy"), Waiting: rapid.Float64Range(0, 1).Draw(t, "waiting"), Pressure: rapid.Float64Range(0, 1).Draw(t, "pressure")},
			Trials: []tuning.Trial{
				{Settings: cores(8), Epochs: 1, Seconds: number("own seconds"), Reference: true}, {Settings: cores(4), Epochs: 1, Seconds: number("seconds")},
			},
			Kind: []tuning.Effect{{Settings: cores(2), LogRatio: number("ratio"), LogTime: number("time"), Runs: 1}},
		}
		if !(f.Usage.Busy > 0) || math.IsInf(f.Usage.Busy, 0) {
			f.Usage = nil
		}
		p := respond.New(f).Predict(cores(float64(rapid.IntRange(1, 64).Draw(t, "to"))))
		for _, r := range []respond.Ratio{p.Time, p.Objective} {
			if math.IsNaN(r.Mean) || math.IsInf(r.Mean, 0) || math.IsNaN(r.SD) || math.IsInf(r.SD, 0) || r.SD < 0 {
				t.Fatalf("predicted %+v", p)
			}
		}
	})
}

func TestACostWeighsEnergyByWhatTheJobUses(t *testing.T) {
	t.Parallel()
	joules := tuning.Joules(3.6e6) // a kilowatt-hour in an epoch of an hour
	own := tuning.Trial{Settings: cores(4), Epochs: 10, Seconds: 3600, Joules: &joules, Source: "rapl", Reference: true}
	predict := func(o tuning.Objective, core, kwh float64) float64 {
		p := policy(o)
		p.Tariff = tuning.Tariff{CoreHour: core, KWh: kwh, Unit: "EUR"}
		f := respond.Facts{Policy: p, Own: cores(4), Usage: &respond.Usage{Cores: 4, Busy: 1}, Trials: []tuning.Trial{own}}
		return respond.New(f).Predict(cores(2)).Objective.Mean
	}
	time, energy := predict(tuning.Time, 1, 0), predict(tuning.Energy, 1, 0)
	held := math.Log(math.Exp(time) / 2)
	for _, c := range []struct {
		name      string
		core, kwh float64
		want      float64
	}{
		{"where energy is free, what is held counts", 1, 0, held},
		{"where cores are free, energy counts", 0, 1, energy},
		{"where both cost the same, both count alike", 1, 4, math.Log((math.Exp(held) + math.Exp(energy)) / 2)},
	} {
		if got := predict(tuning.Cost, c.core, c.kwh); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%s: predicted %g, want %g", c.name, got, c.want)
		}
	}
}

func TestFewerCoresSaveNoneOfWhatGPUsTake(t *testing.T) {
	t.Parallel()
	joules := tuning.Joules(500)
	own := tuning.Trial{Settings: cores(8), Epochs: 10, Seconds: 1, Joules: &joules, Source: "rapl", Reference: true}
	predict := func(watts float64, trials ...tuning.Trial) float64 {
		u := respond.Usage{Cores: 8, Busy: 1, GPUWatts: watts}
		m := respond.New(respond.Facts{Policy: policy(tuning.Energy), Own: cores(8), Usage: &u, Trials: trials})
		return m.Predict(cores(2)).Objective.Mean
	}
	none, most, all := predict(0, own), predict(400, own), predict(500, own)
	if want := math.Log(0.2*math.Exp(none) + 0.8); math.Abs(most-want) > 0.05 || math.Abs(all) > 0.05 {
		t.Errorf("without GPUs %g, where they take four fifths %g, want %g; where they take all %g", none, most, want, all)
	}
	if unknown := predict(400); math.Abs(unknown) > 0.05 {
		t.Errorf("where nothing says how many joules it takes, fewer cores save %g", unknown)
	}
}

func BenchmarkModel(b *testing.B) {
	f := respond.Facts{
		Policy: policy(tuning.Energy), Own: cores(32), Usage: &respond.Usage{Cores: 32, Busy: 4},
		Trials: []tuning.Trial{{Settings: cores(32), Epochs: 3, Seconds: 1, Reference: true}},
	}
	for b.Loop() {
		m := respond.New(f)
		for n := 1.0; n < 32; n *= 2 {
			m.Predict(cores(n))
			m.Between(cores(16), cores(n))
		}
	}
}
