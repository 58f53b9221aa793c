package verify

import (
	"math"
	"math/rand/v2"
	"testing"

	"pitchpipe/controller/tuning"
)

func TestCompareByJoules(t *testing.T) {
	t.Parallel()
	before := func(source string) []tuning.Epoch { return powered(epochs(1, around(8, 10, .02)...), 100, source) }
	after := func(source string) []tuning.Epoch { return powered(epochs(9, around(8, 10, .02)...), 60, source) }
	bare := func() []tuning.Epoch { return epochs(9, around(8, 5, .02)...) }
	tests := []struct {
		name     string
		in       Input
		verdict  tuning.Verdict
		reason   tuning.Reason
		source   string
		logRatio float64
	}{
		{
			"measured joules support a claim",
			Input{Before: before("rapl"), After: after("rapl")},
			tuning.Improved, tuning.ReasonImproved, "rapl", math.Log(.6),
		},
		{
			"modelled joules are printed and support no claim",
			Input{Before: before("modelled"), After: after("modelled")},
			tuning.Inconclusive, tuning.ReasonModelled, "modelled", math.Log(.6),
		},
		{
			"modelled joules support a claim where the site opted in",
			Input{Before: before("modelled"), After: after("modelled"), EnforceModelled: true},
			tuning.Improved, tuning.ReasonImproved, "modelled", math.Log(.6),
		},
		{
			"joules of a part of the nodes support no claim",
			Input{Before: before(tuning.Part("rapl", 4)), After: after(tuning.Part("rapl", 4))},
			tuning.Inconclusive, tuning.ReasonPartial, tuning.Part("rapl", 4), math.Log(.6),
		},
		{
			"nor do modelled ones",
			Input{Before: before(tuning.Part("modelled", 4)), After: after(tuning.Part("modelled", 4))},
			tuning.Inconclusive, tuning.ReasonModelled, tuning.Part("modelled", 4), math.Log(.6),
		},
		{
			"joules of different sources are not compared",
			Input{Before: before("rapl"), After: after("bmc")},
			tuning.Inconclusive, tuning.ReasonNoSamples, "", 0,
		},
		{
			"joules on one side only are not compared",
			Input{Before: before("rapl"), After: bare()},
			tuning.Inconclusive, tuning.ReasonNoSamples, "", 0,
		},
		{"measured joules go before modelled ones", Input{
			Before: append(before("modelled"), before("rapl")...),
			After:  append(after("modelled"), powered(epochs(20, around(6, 10, .02)...), 50, "rapl")...),
		}, tuning.Improved, tuning.ReasonImproved, "rapl", math.Log(.5)},
		{"of two measured sources the one with more epochs counts", Input{
			Before: append(before("bmc"), before("rapl")...),
			After:  append(powered(epochs(20, around(3, 10, .02)...), 90, "bmc"), after("rapl")...),
		}, tuning.Improved, tuning.ReasonImproved, "rapl", math.Log(.6)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Objective = tuning.Energy
			got := Compare(tt.in)
			if got.Verdict != tt.verdict || got.Reason != tt.reason || got.Source != tt.source ||
				math.Abs(got.LogRatio-tt.logRatio) > 1e-6 {
				t.Errorf("Compare = %+v, want %s (%s) by %q at %.4f", got, tt.verdict, tt.reason, tt.source, tt.logRatio)
			}
		})
	}
}

func TestTheMeasureFollowsTheObjective(t *testing.T) {
	t.Parallel()
	// Half the time at four fifths of the power.
	in := Input{
		Before: powered(epochs(1, around(8, 10, .02)...), 100, "rapl"),
		After:  powered(epochs(9, around(8, 5, .02)...), 80, "rapl"),
	}
	slow, hot := math.Log(.5), math.Log(.5*.8)
	tests := []struct {
		objective tuning.Objective
		weight    float64
		want      float64
	}{
		{"", 0, slow},
		{tuning.Time, 0, slow},
		{tuning.Energy, 0, hot},
		{tuning.EDP, 0, slow + hot},
		{tuning.Blend, .25, .25*hot + .75*slow},
		{tuning.Blend, 0, slow},
		{tuning.Blend, 1, hot},
	}
	for _, tt := range tests {
		in := in
		in.Objective, in.Weight = tt.objective, tt.weight
		got := Compare(in)
		if math.Abs(got.LogRatio-tt.want) > 1e-6 {
			t.Errorf("%s with weight %g: log ratio %.5f, want %.5f", tt.objective, tt.weight, got.LogRatio, tt.want)
		}
		if got.Verdict != tuning.Improved {
			t.Errorf("%s with weight %g: %s (%s)", tt.objective, tt.weight, got.Verdict, got.Reason)
		}
	}
}

func TestChoosingAmongManyWidensTheInterval(t *testing.T) {
	t.Parallel()
	in := Input{Before: epochs(1, around(6, 10, .05)...), After: epochs(7, around(6, 8, .05)...)}
	alone := Compare(in)
	in.Candidates = 12
	chosen := Compare(in)
	if chosen.High-chosen.Low <= alone.High-alone.Low {
		t.Errorf("interval of one of 12: [%.3f, %.3f], of one alone: [%.3f, %.3f]", chosen.Low, chosen.High, alone.Low, alone.High)
	}
}

func TestOneStallDoesNotHideTheEffectOfAllOthers(t *testing.T) {
	t.Parallel()
	after := around(20, 8, .02)
	after[7] = 80
	got := Compare(Input{Before: epochs(1, around(10, 10, .02)...), After: epochs(11, after...)})
	if got.Verdict != tuning.Improved {
		t.Errorf("Compare = %+v, want improved", got)
	}
}

func TestCompareIsSymmetric(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var a, b []float64
		for range 2 + rng.IntN(12) {
			a = append(a, 5+rng.Float64())
			b = append(b, 5+2*rng.Float64())
		}
		there := Compare(Input{Before: epochs(1, a...), After: epochs(1, b...)})
		back := Compare(Input{Before: epochs(1, b...), After: epochs(1, a...)})
		if math.Abs(there.LogRatio+back.LogRatio) > 1e-9 || math.Abs(there.Low+back.High) > 1e-9 {
			t.Fatalf("there [%g, %g], back [%g, %g]", there.Low, there.High, back.Low, back.High)
		}
	}
}

func under(es []tuning.Epoch, cores float64) []tuning.Epoch {
	for i := range es {
		es[i].Settings = tuning.Settings{tuning.Cores: tuning.Number(cores)}
	}
	return es
}

func TestCostIsComparedByWhatWasHeldAndByJoulesOfBothSides(t *testing.T) {
	t.Parallel()
	// A kilowatt-hour costs as much as a core-hour; half the cores take 5 % longer.
	tariff := tuning.Tariff{CoreHour: 1, KWh: 1, Unit: "EUR"}
	before := func() []tuning.Epoch { return under(epochs(1, around(8, 3600, .001)...), 4) }
	after := func() []tuning.Epoch { return under(epochs(9, around(8, 3780, .001)...), 2) }
	held := math.Log(2 * 1.05 / 4)
	for _, c := range []struct {
		name     string
		in       Input
		tariff   tuning.Tariff
		want     float64
		source   string
		noEnergy bool
	}{
		{"energy that was not measured is left out", Input{Before: before(), After: after()}, tariff, held, "", true},
		{"so is energy of one side", Input{Before: powered(before(), 1000, "rapl"), After: after()}, tariff, held, "", true},
		{"so is modelled energy", Input{Before: powered(before(), 1000, tuning.Modelled), After: powered(after(), 1000, tuning.Modelled)}, tariff, held, "", true},
		{"energy without a price is not missed", Input{Before: before(), After: after()}, tariff.WithoutEnergy(), held, "", false},
		{"energy of both sides is charged", Input{Before: powered(before(), 1000, "rapl"), After: powered(after(), 1000, "rapl")}, tariff, math.Log(3 * 1.05 / 5), "rapl", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.in.Measure = tuning.Measure{Objective: tuning.Cost, Tariff: c.tariff}
			got := Compare(c.in)
			if math.Abs(got.LogRatio-c.want) > 1e-3 || got.Verdict != tuning.Improved || got.Source != c.source || got.NoEnergy != c.noEnergy {
				t.Errorf("%+v, want improved at %.4f by %q, without energy %t", got, c.want, c.source, c.noEnergy)
			}
		})
	}
}

func TestACostIsChargedWithTheCostOfTuning(t *testing.T) {
	t.Parallel()
	p := pair(10, 1)
	p.Untuned, p.Tuned = powered(under(p.Untuned, 4), 1000, "rapl"), powered(under(p.Tuned, 2), 1000, "rapl")
	p.ChargeHeld, p.ChargeJoules, p.ChargeSource = .05, 3.6e5, "rapl"
	m := measure{Measure: tuning.Measure{Objective: tuning.Cost, Tariff: tuning.Tariff{CoreHour: 1, KWh: 1, Unit: "EUR"}}, source: "rapl"}
	// 100 s on two cores at 1 kW cost 300/3600, and tuning .05 and a tenth of a kilowatt-hour.
	want := math.Log(3./5) + math.Log1p((.05+.1)/(300./3600))
	for _, got := range m.ratios(p) {
		if math.Abs(got-want) > 1e-6 {
			t.Fatalf("ratio %g, want %g", got, want)
		}
	}
}
