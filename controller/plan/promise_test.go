package plan_test

import (
	"math"
	"testing"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// promised is the share of the rest that the next setting is said to save.
func promised(t *testing.T, s tuning.State) float64 {
	t.Helper()
	d := plan.Decide(s)
	for _, e := range d.Evidence {
		if e.Name == "expected_saving_share" {
			return e.Value
		}
	}
	t.Fatalf("%s %s says nothing of what is expected: %v", d.Action, d.Reason, d.Evidence)
	return 0
}

func TestWhatIsExpectedOfASettingThatNobodyMeasured(t *testing.T) {
	t.Parallel()
	batch := func(n float64) tuning.Settings { return cores(1).With("batch_size", tuning.Number(n)) }
	replicas := func(n float64) tuning.Settings { return cores(1).With("replicas", tuning.Number(n)) }
	watts := func(n float64) tuning.Settings { return cores(1).With("power_limit_watts", tuning.Number(n)) }
	for _, c := range []struct {
		name      string
		objective tuning.Objective
		own, next tuning.Settings
		lost      int // settings that were tried and saved nothing
		want      float64
	}{
		{"half of what more cores take over, where time counts", tuning.Time, cores(1), cores(2), 0, 0.25},
		{"what the site expects, where joules count", tuning.Energy, cores(1), cores(2), 0, 0.04},
		{"as much as either has, where both count", tuning.EDP, cores(1), cores(2), 0, 0.145},
		{"next to nothing of fewer cores, where time counts", tuning.Time, cores(2), cores(1), 0, 0.008},
		{"what the site expects of fewer cores, where joules count", tuning.Energy, cores(2), cores(1), 0, 0.04},
		{"next to nothing of fewer replicas, where time counts", tuning.Time, replicas(8), replicas(4), 0, 0.008},
		{"nothing of less power, where time counts", tuning.Time, watts(250), watts(200), 0, 0},
		{"half of what the cube law allows of less power, where joules count", tuning.Energy, watts(250), watts(128), 0, 0.18},
		{"half of everything from a hyperparameter, which nobody can tell", tuning.Energy, batch(8), batch(64), 0, 0.5},
		{"less after a disappointment", tuning.Time, cores(1), cores(2), 2, 0.125},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := running()
			s.Site.ExpectedSaving = 0.04
			s.Policy.Objective = c.objective
			s.EpochsTotal, s.Policy.Budget.Probes = 100000, 9
			s.Own, s.Current, s.Next = c.own, c.own, c.next
			joules := tuning.Joules(1)
			own := tuning.Trial{Settings: c.own, Epochs: 3, Seconds: 1, Joules: &joules, Source: "rapl", Reference: true}
			s.Trials, s.JoulesSource = []tuning.Trial{own}, "rapl"
			for i := range c.lost {
				lost := own
				lost.Settings, lost.Reference = batch(float64(16+i)), false
				s.Trials = append(s.Trials, lost)
				s.Probes++
			}
			if got := promised(t, s); got < c.want-1e-9 || got > c.want+1e-9 {
				t.Errorf("%g, want %g", got, c.want)
			}
		})
	}
}

func TestWhatMayBeSlowerThanAllowedPromisesLess(t *testing.T) {
	t.Parallel()
	s := running()
	s.Policy.Objective, s.EpochsTotal, s.Site.ExpectedSaving = tuning.Energy, 100000, 0.04
	s.Own, s.Current, s.Next = cores(20), cores(20), cores(16)
	s.Trials[0].Settings = cores(20)
	for _, c := range []struct{ allowed, want float64 }{{0, 0.04}, {1.25, 0.04}, {1.1, 0.016}, {1.05, 0.008}} {
		s.Policy.MaxSlowdown = c.allowed // four fifths of the cores take 1.25 times as long at most
		if got := promised(t, s); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%g where %g times as long is allowed, want %g", got, c.allowed, c.want)
		}
	}
}

// explored is what a probe is expected to lose.
func explored(t *testing.T, s tuning.State) float64 {
	t.Helper()
	d := plan.Decide(s)
	if d.Prices == nil {
		t.Fatalf("%s %s without prices", d.Action, d.Reason)
	}
	return d.Prices.Explore
}

func TestAProbeIsPricedByWhatItTakesAway(t *testing.T) {
	t.Parallel()
	s := running()
	s.Policy.Objective, s.EpochsTotal = tuning.Time, 100000
	before := 0.0
	for _, n := range []float64{19, 15, 10, 5, 1} {
		s.Own, s.Current, s.Next = cores(20), cores(20), cores(n)
		s.Trials[0].Settings = cores(20)
		now := explored(t, s)
		if !(now > before) {
			t.Errorf("a probe of %g of 20 cores is expected to lose %g, one of more of them %g", n, now, before)
		}
		before = now
	}
}

func TestAShortJobIsNotProbedForLittle(t *testing.T) {
	t.Parallel()
	s := running()
	s.Own, s.Current, s.Next = cores(2), cores(2), cores(1)
	s.Trials[0].Settings = cores(2)
	s.Policy.Objective = tuning.Time
	s.EpochsTotal = 400
	if d := plan.Decide(s); d.Action != tuning.Probe {
		t.Fatalf("%s %s where much is expected, want a probe", d.Action, d.Reason)
	}
	s.Site.ExpectedSaving = tuning.DefaultSite().ExpectedSaving
	if d := plan.Decide(s); d.Action != tuning.Hold || d.Reason != tuning.ReasonTooShort {
		t.Errorf("%s %s where fewer cores are expected to save next to nothing of the time, want hold too-short", d.Action, d.Reason)
	}
}

func TestWhatRunsOfTheKindShowedIsNotHopedForAgain(t *testing.T) {
	t.Parallel()
	s := running()
	s.Policy.Objective, s.EpochsTotal, s.Site.ExpectedSaving = tuning.Energy, 100000, 0.04
	s.Own, s.Current, s.Next = cores(4), cores(4), cores(2)
	s.Trials[0].Settings = cores(4)
	showed := func(n, ratio float64, runs int, age float64) []tuning.Effect {
		return []tuning.Effect{{Settings: cores(n), LogRatio: ratio, Runs: runs, Age: age}}
	}
	before := promised(t, s)
	for _, c := range []struct {
		name    string
		effects []tuning.Effect
		is      func(now float64) bool
	}{
		{"a setting that lost promises a small part", showed(2, 0.2, 1, 0), func(now float64) bool { return now < before/5 }},
		{"the less the more often it lost", showed(2, 0.2, 4, 0), func(now float64) bool { return now < before/20 }},
		{"one that lost long ago promises again", showed(2, 0.2, 1, 2000), func(now float64) bool { return now > 0.9*before && now < before }},
		{"one that saved promises that", showed(2, -0.05, 1, 0), func(now float64) bool { return now > before && now < 0.05 }},
		{"after a loss of another one it promises less", showed(1, 0.2, 1, 0), func(now float64) bool { return now < before && now > before/2 }},
		{"a ratio that is no number says nothing", showed(2, math.NaN(), 1, 0), func(now float64) bool { return now == before }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := s
			s.KindEffects = c.effects
			if now := promised(t, s); !c.is(now) {
				t.Errorf("%g after %g", now, before)
			}
		})
	}
}

func TestAStepIsMeasuredFromTheBestSettingSoFar(t *testing.T) {
	t.Parallel()
	s := running()
	s.Policy.Objective, s.EpochsTotal, s.Probes = tuning.Energy, 100000, 1
	s.Policy.Budget.Probes = 9
	s.Own, s.Current, s.Next = cores(8), cores(2), cores(1)
	joules := tuning.Joules(1)
	less := tuning.Joules(0.5)
	own := tuning.Trial{Settings: cores(8), Epochs: 3, Seconds: 1, Joules: &joules, Source: "rapl", Reference: true}
	two := tuning.Trial{Settings: cores(2), Epochs: 3, Seconds: 1, Joules: &less, Source: "rapl"}
	s.Trials, s.JoulesSource = []tuning.Trial{own, two}, "rapl"
	far := explored(t, s)
	s.Best, s.BestGain = &two, -0.7
	if near := explored(t, s); !(near < far) {
		t.Errorf("from two cores to one is expected to lose %g, from eight %g", near, far)
	}
}
