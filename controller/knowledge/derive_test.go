package knowledge

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pitchpipe/controller/tuning"
)

func epoch0() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func kind(name string) tuning.JobKind {
	return tuning.JobKind{Owner: "alice", Name: name, Fingerprint: "f"}
}

func onCores(n float64) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(n)} }

// trial has two epochs of the given seconds and joules (0: not measured).
func trial(s tuning.Settings, seconds, joules float64) tuning.Trial {
	t := tuning.Trial{Settings: s, Epochs: 2, Seconds: seconds, SDLog: .02, Source: "rapl"}
	if joules > 0 {
		j := tuning.Joules(joules)
		t.Joules = &j
	}
	return t
}

func reference(t tuning.Trial) tuning.Trial { t.Reference = true; return t }

// observation is a job that ran on one core and, in half the time, on two.
func observation(job string, day int) Observation {
	return Observation{
		ID: job + "/final", Job: job, Kind: kind("train"), Machine: "m/8", Cores: 8,
		At: epoch0().AddDate(0, 0, day),
		Trials: []tuning.Trial{
			reference(trial(onCores(1), 10, 100)),
			trial(onCores(2), 5, 90),
		},
	}
}

func at(day int) time.Time { return epoch0().AddDate(0, 0, day) }

func byTimeAlone() tuning.Measure { return tuning.Measure{Objective: tuning.Time} }

func near() cmp.Option { return cmpopts.EquateApprox(1e-9, 1e-9) }

func TestEffectsOfAKind(t *testing.T) {
	t.Parallel()
	with := func(o Observation, f func(*Observation)) Observation { f(&o); return o }
	within := math.Sqrt(.02*.02/2 + .02*.02/2)
	tests := []struct {
		name string
		obs  []Observation
		own  tuning.Settings
		m    tuning.Measure
		want []tuning.Effect
	}{
		{"nothing observed teaches nothing", nil, nil, byTimeAlone(), nil},
		{
			"one run gives its own ratio, with the noise within it",
			[]Observation{observation("a", 0)},
			nil, byTimeAlone(),
			[]tuning.Effect{{Settings: onCores(2), LogRatio: math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 1, Age: 10}},
		},
		{
			"energy is compared by joules, its time is reported too",
			[]Observation{observation("a", 0)},
			nil,
			tuning.Measure{Objective: tuning.Energy},
			[]tuning.Effect{{Settings: onCores(2), LogRatio: math.Log(.9), LogTime: math.Log(.5), SD: within, Runs: 1, Age: 10}},
		},
		{
			"edp and blend combine both",
			[]Observation{observation("a", 0)},
			nil,
			tuning.Measure{Objective: tuning.Blend, Weight: .25},
			[]tuning.Effect{{
				Settings: onCores(2), LogRatio: .25*math.Log(.9) + .75*math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 1, Age: 10,
			}},
		},
		{
			"another input makes no difference",
			[]Observation{
				observation("a", 10),
				with(observation("b", 10), func(o *Observation) {
					o.Trials = []tuning.Trial{reference(trial(onCores(1), 1000, 0)), trial(onCores(2), 500, 0)}
				}),
			},
			nil, byTimeAlone(),
			[]tuning.Effect{{Settings: onCores(2), LogRatio: math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 2, Age: 0}},
		},
		{
			"a polluted job teaches nothing",
			[]Observation{with(observation("a", 0), func(o *Observation) { o.Polluted = true })},
			nil, byTimeAlone(), nil,
		},
		{
			"a job that only ran tuned teaches nothing by itself",
			[]Observation{with(observation("a", 0), func(o *Observation) { o.Trials = o.Trials[1:] })},
			nil, byTimeAlone(), nil,
		},
		{
			"a failed trial teaches no effect",
			[]Observation{with(observation("a", 0), func(o *Observation) { o.Trials[1].Failed = true })},
			nil, byTimeAlone(), nil,
		},
		{
			"joules of two sources are not compared",
			[]Observation{with(observation("a", 0), func(o *Observation) { o.Trials[1].Source = "modelled" })},
			nil,
			tuning.Measure{Objective: tuning.EDP},
			nil,
		},
		{
			"other kinds are other kinds",
			[]Observation{with(observation("a", 0), func(o *Observation) { o.Kind = kind("other") })},
			nil, byTimeAlone(), nil,
		},
		{
			"memory is not part of a setting",
			[]Observation{with(observation("a", 10), func(o *Observation) {
				o.Trials[0].Settings = onCores(1).With(tuning.Memory, tuning.Number(1<<30))
				o.Trials[1].Settings = onCores(2).With(tuning.Memory, tuning.Number(1<<20))
			})},
			nil, byTimeAlone(),
			[]tuning.Effect{{Settings: onCores(2), LogRatio: math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 1}},
		},
		{
			"who asks from two cores is compared with two cores",
			[]Observation{observation("a", 10)},
			onCores(2), byTimeAlone(),
			[]tuning.Effect{{Settings: onCores(1), LogRatio: math.Log(2), LogTime: math.Log(2), SD: within, Runs: 1}},
		},
		{"who asks from settings never seen learns nothing", []Observation{observation("a", 10)}, onCores(3), byTimeAlone(), nil},
		{
			"observations of one job count as one run",
			[]Observation{
				with(observation("a", 10), func(o *Observation) { o.Trials = o.Trials[:1] }),
				with(observation("a", 10), func(o *Observation) { o.ID = "a/probe"; o.Trials = o.Trials[1:] }),
			},
			nil, byTimeAlone(),
			[]tuning.Effect{{Settings: onCores(2), LogRatio: math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 1}},
		},
		{
			"the best effect comes first",
			[]Observation{with(observation("a", 10), func(o *Observation) {
				o.Trials = append(o.Trials, trial(onCores(4), 20, 0), trial(onCores(8), 2.5, 0))
			})},
			nil, byTimeAlone(),
			[]tuning.Effect{
				{Settings: onCores(8), LogRatio: math.Log(.25), LogTime: math.Log(.25), SD: within, Runs: 1},
				{Settings: onCores(2), LogRatio: math.Log(.5), LogTime: math.Log(.5), SD: within, Runs: 1},
				{Settings: onCores(4), LogRatio: math.Log(2), LogTime: math.Log(2), SD: within, Runs: 1},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Effects(tt.obs, Asker{Kind: kind("train"), Own: tt.own}, tt.m, at(10))
			if diff := cmp.Diff(tt.want, got, near()); diff != "" {
				t.Errorf("Effects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSpreadBetweenRunsIsTold(t *testing.T) {
	t.Parallel()
	var obs []Observation
	for i, ratio := range []float64{.4, .5, .6} {
		o := observation(fmt.Sprint(i), 0)
		o.Trials[1].Seconds = 10 * ratio
		obs = append(obs, o)
	}
	got := Effects(obs, Asker{Kind: kind("train")}, byTimeAlone(), at(0))
	var mean, squares float64
	for _, r := range []float64{.4, .5, .6} {
		mean += math.Log(r) / 3
	}
	for _, r := range []float64{.4, .5, .6} {
		squares += (math.Log(r) - mean) * (math.Log(r) - mean)
	}
	if len(got) != 1 || math.Abs(got[0].LogRatio-mean) > 1e-9 || math.Abs(got[0].SD-math.Sqrt(squares/2)) > 1e-9 || got[0].Runs != 3 {
		t.Errorf("Effects = %+v, want mean %.4f and standard deviation %.4f of 3 runs", got, mean, math.Sqrt(squares/2))
	}
}

func TestAnOldRunCountsForHalfAfterTheHalfLife(t *testing.T) {
	t.Parallel()
	older, newer := observation("old", 0), observation("new", 90)
	older.Trials[1].Seconds = 10
	got := Effects([]Observation{older, newer}, Asker{Kind: kind("train")}, byTimeAlone(), at(90))
	want := (0.5*0 + 1*math.Log(.5)) / 1.5
	if len(got) != 1 || math.Abs(got[0].LogRatio-want) > 1e-9 || got[0].Age != 0 {
		t.Errorf("Effects = %+v, want a mean of %.4f, newest 0 days old", got, want)
	}
	// After a thousand half-lives the weights vanish; the mean does not.
	far := Effects([]Observation{older, newer}, Asker{Kind: kind("train")}, byTimeAlone(), at(2_000_000))
	if len(far) != 1 || math.IsNaN(far[0].LogRatio) || math.IsNaN(far[0].SD) {
		t.Errorf("Effects much later = %+v", far)
	}
}

func TestClassEffects(t *testing.T) {
	t.Parallel()
	cores := func(es []tuning.Effect) map[string]float64 {
		out := map[string]float64{}
		for _, e := range es {
			out[e.Settings.Key()] = math.Round(math.Exp(e.LogRatio)*1000) / 1000
		}
		return out
	}
	threaded := observation("threads", 0)
	threaded.Kind = kind("other")
	threaded.Trials[0].Settings = tuning.Settings{"cores": tuning.Number(1), "threads": tuning.Number(1)}
	threaded.Trials[1].Settings = tuning.Settings{"cores": tuning.Number(2), "threads": tuning.Number(2)}
	mixed := observation("mixed", 0)
	mixed.Trials[0].Settings = onCores(1).With("batch", tuning.Number(32))
	mixed.Trials[1].Settings = onCores(2).With("batch", tuning.Number(64))
	sized := observation("sized", 0)
	sized.Trials[0].Settings = onCores(1).With("batch", tuning.Number(32))
	sized.Trials[1].Settings = onCores(2).With("batch", tuning.Number(32)).With(tuning.Memory, tuning.Number(5))
	unknown := observation("unknown", 0)
	unknown.Machine, unknown.Cores = "", 0
	chosen := observation("chosen", 0) // 100 s with threads of its program's own, 50 s with one per core, 70 s on one core
	both := tuning.Settings{"cores": tuning.Number(2), "threads": tuning.Number(2)}
	chosen.Trials = []tuning.Trial{
		{Settings: onCores(2), Reference: true, Epochs: 2, Seconds: 100},
		{Settings: both, Epochs: 40, Seconds: 50},
		{Settings: tuning.Settings{"cores": tuning.Number(1), "threads": tuning.Number(1)}, Epochs: 2, Seconds: 70},
	}
	tests := []struct {
		name string
		obs  []Observation
		own  tuning.Settings
		to   Target
		want map[string]float64
	}{
		{
			"who leaves threads to the program is compared with that",
			[]Observation{chosen},
			onCores(2),
			Target{"m/8", 8},
			map[string]float64{"cores=2 threads=2": .5, "cores=1 threads=1": .7},
		},
		{
			"who sets them is not",
			[]Observation{chosen},
			both,
			Target{"m/8", 8},
			map[string]float64{"cores=2": 2, "cores=1 threads=1": 1.4},
		},
		{"a class without members teaches nothing", nil, nil, Target{"m/8", 8}, map[string]float64{}},
		{"on the same machine counts are exact", []Observation{observation("a", 0)}, nil, Target{"m/8", 8}, map[string]float64{"cores=2": .5}},
		{"on a machine twice the size shares stay", []Observation{observation("a", 0)}, nil, Target{"n/16", 16}, map[string]float64{"cores=4": .5}},
		{
			"on a smaller machine at least one core remains, so that the effect vanishes",
			[]Observation{observation("a", 0)},
			nil,
			Target{"n/2", 2},
			map[string]float64{},
		},
		{"a machine of unknown size teaches nothing elsewhere", []Observation{unknown}, nil, Target{"n/2", 2}, map[string]float64{}},
		{"other kinds of the class count", []Observation{threaded}, nil, Target{"m/8", 8}, map[string]float64{"cores=2 threads=2": .5}},
		{"a trial that changed a hyperparameter too teaches nothing", []Observation{mixed}, nil, Target{"m/8", 8}, map[string]float64{}},
		{"hyperparameters and memory do not travel", []Observation{sized}, nil, Target{"m/8", 8}, map[string]float64{"cores=2": .5}},
		{"who asks from two cores is compared with two cores", []Observation{sized}, onCores(2), Target{"m/8", 8}, map[string]float64{"cores=1": 2}},
		{
			"who asks with threads is compared by what both name",
			[]Observation{observation("a", 0)},
			tuning.Settings{"cores": tuning.Number(2), "threads": tuning.Number(2)},
			Target{"m/8", 8},
			map[string]float64{"cores=1": 2},
		},
		{"who asks from cores never seen learns nothing", []Observation{observation("a", 0)}, onCores(8), Target{"m/8", 8}, map[string]float64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := cores(ClassEffects(tt.obs, tt.own, tt.to, byTimeAlone(), at(0)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ClassEffects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsOfAKind(t *testing.T) {
	t.Parallel()
	four, two := onCores(4), onCores(2)
	a, b, c := observation("a", 0), observation("b", 1), observation("c", 2)
	a.Peak = 100
	a.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Tuned: four}
	b.Profiles = []tuning.Profile{{PeakRSS: 300}, {PeakRSS: 200}}
	b.Regressed = []tuning.Settings{two, nil}
	b.RestartCosts = []time.Duration{4 * time.Second, time.Second, 2 * time.Second}
	c.Trials = c.Trials[1:] // ran tuned only
	obs := []Observation{c, b, a, a}

	if peak, jobs := PeakRSS(obs, Asker{Kind: kind("train")}); peak != 300 || jobs != 2 {
		t.Errorf("PeakRSS = %d in %d jobs, want 300 in 2", peak, jobs)
	}
	killed := observation("killed", 3)
	killed.Peak, killed.End = 400, tuning.EndMemory
	if peak, jobs := PeakRSS(append(obs, killed), Asker{Kind: kind("train")}); peak != 400 || jobs != 2 {
		t.Errorf("PeakRSS = %d in %d jobs, want the limit of the one that was killed, 400, in the 2 others", peak, jobs)
	}
	if got := Regressions(obs, kind("train")); len(got) != 2 || !got[0].Equal(four) || !got[1].Equal(two) {
		t.Errorf("Regressions = %v, want [%v %v]", got, four, two)
	}
	if got, ok := LastReference(obs, kind("train")); !ok || !got.Settings.Equal(onCores(1)) {
		t.Errorf("LastReference = %v, %t", got, ok)
	}
	if _, ok := LastReference([]Observation{c}, kind("train")); ok {
		t.Error("a job that ran tuned only has a reference")
	}
	if cost, n := RestartCost(obs, kind("train")); cost != 2*time.Second || n != 3 {
		t.Errorf("RestartCost = %s of %d, want 2s of 3", cost, n)
	}
	if cost, n := RestartCost(obs, kind("other")); cost != 2*time.Second || n != 3 {
		t.Errorf("RestartCost of a kind without any = %s of %d, want that of all", cost, n)
	}
	c.Kind, c.Startup = kind("slow"), time.Minute
	if cost, n := RestartCost([]Observation{b, c}, kind("slow")); cost != time.Minute || n != 3 {
		t.Errorf("RestartCost of a kind that was never restarted = %s of %d, want its start", cost, n)
	}
	d, e := c, c // cancelled in their first epochs
	d.ID, d.Startup, e.ID, e.Startup = "slow-2", 0, "slow-3", 0
	if cost, _ := RestartCost([]Observation{b, c, d, e}, kind("slow")); cost != time.Minute {
		t.Errorf("RestartCost = %s, where two starts of three are unknown, want the known one", cost)
	}
	c.Kind = kind("train")
	if cost, n := RestartCost(nil, kind("train")); cost != 0 || n != 0 {
		t.Errorf("RestartCost of nothing = %s of %d", cost, n)
	}
	c.Outcome = &tuning.Outcome{Verdict: tuning.Improved, Tuned: four}
	if got := Regressions([]Observation{a, b, c}, kind("train")); len(got) != 1 || !got[0].Equal(two) {
		t.Errorf("Regressions after a later improvement = %v, want [%v]", got, two)
	}
}
