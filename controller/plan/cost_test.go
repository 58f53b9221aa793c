package plan_test

import (
	"math"
	"testing"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// costly is a job on four cores (1.3 of them busy) that is tuned for its cost, has 360 epochs
// of ten seconds left, and may be probed on two cores.
func costly() tuning.State {
	s := running()
	s.Policy.Objective, s.Policy.MaxSlowdown = tuning.Cost, tuning.DefaultMaxSlowdown
	s.Policy.Knobs[0].Values = []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4), tuning.Number(8)}
	s.Own, s.Current, s.Next = cores(4), cores(4), cores(2)
	s.EpochsTotal, s.EpochSeconds = 364, 10
	s.Trials = []tuning.Trial{{Settings: cores(4), Epochs: 3, Seconds: 10, Reference: true}}
	s.Profile = &tuning.Profile{Settings: cores(4), Features: map[string]float64{"cpu_utilisation": 1.3 / 4}}
	return s
}

func TestAJobIsTunedForItsCost(t *testing.T) {
	t.Parallel()
	measured := func(joules float64) *tuning.Joules { return new(tuning.Joules(joules)) }
	decideAll(t, []row{
		{"fewer cores are tried at a site that wrote no policy", costly, nil, tuning.Probe, tuning.ReasonUnknownProbe, cores(2)},
		{"fewer are not in whole nodes, which cost the same", costly, func(s *tuning.State) {
			s.Policy.Tariff = tuning.DefaultTariff().Fixed(s.Own)
		}, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"nor where cores are free", costly, func(s *tuning.State) {
			s.Policy.Tariff = tuning.Tariff{GiBHour: 1, Unit: "EUR"}
			s.Own = s.Own.With(tuning.Memory, tuning.Number(1<<30))
			s.Current, s.Trials[0].Settings, s.Next = s.Own, s.Own, s.Next.With(tuning.Memory, tuning.Number(1<<30))
		}, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"what has no price cannot be counted", costly, func(s *tuning.State) {
			s.Policy.Tariff = tuning.Tariff{GPUHour: 1, Unit: "EUR"}
		}, tuning.Hold, tuning.ReasonUncounted, nil},
		{"a probe that cost less stays", costly, func(s *tuning.State) {
			s.Current, s.Probes, s.Next, s.NextReason = cores(2), 1, nil, tuning.ReasonProbesDone
			s.Trials = append(s.Trials, tuning.Trial{Settings: cores(2), Epochs: 3, Seconds: 10.5})
			s.Best, s.BestGain, s.BestError = &s.Trials[1], math.Log(.525), 0.05
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"one that took as much longer as it had fewer cores is left", costly, func(s *tuning.State) {
			s.Current, s.Probes, s.Next, s.NextReason = cores(2), 1, nil, tuning.ReasonProbesDone
			s.Trials = append(s.Trials, tuning.Trial{Settings: cores(2), Epochs: 3, Seconds: 22})
			s.Refused = tuning.ReasonSlower
		}, tuning.RollBack, tuning.ReasonSlower, cores(4)},
		{"energy without measured joules is left out", costly, func(s *tuning.State) {
			s.Policy.Tariff = tuning.Tariff{CoreHour: 1, KWh: 1, Unit: "EUR"}
			s.Trials[0].Joules, s.Trials[0].Source = measured(5e9), tuning.Modelled
		}, tuning.Probe, tuning.ReasonUnknownProbe, cores(2)},
	})
}

func TestSavingsOfCostAreInItsUnit(t *testing.T) {
	t.Parallel()
	s := costly()
	s.Policy.Tariff = tuning.Tariff{CoreHour: 9, KWh: 1, Unit: "EUR"} // the owner's four cores cost a cent a second
	d := plan.Decide(s)
	if v, ok := number(d, "restart_cost_cost"); !ok || math.Abs(v-2*.01*s.RestartCost.Seconds()) > 1e-9 {
		t.Errorf("two restarts cost %g", v)
	}
	if unit, _ := text(d, "predicted_saving_cost"); unit != "EUR" || d.Prices == nil || d.Prices.Unit != "EUR" {
		t.Errorf("the unit of the saving is %q, and the prices %+v", unit, d.Prices)
	}
	if what, ok := text(d, "cost_without"); !ok || what != "energy" {
		t.Errorf("it is not said that energy is left out: %+v", d.Evidence)
	}
	ten := tuning.Exactly(3600)
	epochs := tuning.Exactly(360)
	joules := tuning.Exactly(3.6e7)
	s.Forecast = &tuning.Forecast{Epochs: &epochs, Seconds: &ten, Joules: &joules, JoulesSource: "rapl"}
	s.Trials[0].Joules, s.Trials[0].Source = new(tuning.Joules(1e5)), "rapl"
	d = plan.Decide(s)
	if _, left := text(d, "cost_without"); left {
		t.Errorf("measured energy is said to be left out: %+v", d.Evidence)
	}
	// 10 kW for an hour cost 10, as much as 1000 cents of cores in a thousand seconds.
	if v, ok := number(d, "restart_cost_cost"); !ok || math.Abs(v-2*(.01+10./3600)*s.RestartCost.Seconds()) > 1e-9 {
		t.Errorf("two restarts with their energy cost %g", v)
	}
}

// A trial of a search may end at its next rung. A probe of it serves the trials that follow, and a move only itself.
func TestATrialMovesWhereThatPaysUntilItsNextRung(t *testing.T) {
	t.Parallel()
	recalled := func() tuning.State {
		s := running()
		s.KindEffects, s.EpochsTotal, s.EpochSeconds = []tuning.Effect{effect(cores(2), -0.5)}, 103, 10
		return s
	}
	rung := func(epochs float64) func(*tuning.State) { return func(s *tuning.State) { s.EpochsLikely = epochs } }
	decideAll(t, []row{
		{"a job that is no trial moves", recalled, nil, tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"so does a trial that is likely to run for long", recalled, rung(60), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"one that is likely to end soon does not", recalled, rung(2), tuning.Hold, tuning.ReasonTooShort, nil},
		{"it probes for the trials that follow", costly, rung(4), tuning.Probe, tuning.ReasonUnknownProbe, cores(2)},
		{"unless it is likely to end before the probe does", costly, rung(2), tuning.Hold, tuning.ReasonUnlikely, nil},
	})
}
