package tuning_test

import (
	"math"
	"testing"

	"pitchpipe/controller/tuning"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	asked := tuning.Settings{
		tuning.Cores: tuning.Number(4), tuning.Memory: tuning.Number(8 << 30), tuning.GPUs: tuning.Number(2),
	}
	all := tuning.Tariff{CoreHour: 2, GiBHour: .5, GPUHour: 10, KWh: .3, Unit: "EUR"}
	dearest := all
	dearest.Dearest = true
	unknown := math.NaN()
	for _, c := range []struct {
		name            string
		tariff          tuning.Tariff
		seconds, joules float64
		settings        tuning.Settings
		want            float64
	}{
		{"a site without prices counts core-hours", tuning.DefaultTariff(), 1800, 0, asked, 2},
		{"all that was asked for is added up", all, 3600, 0, asked, 4*2 + 8*.5 + 2*10},
		{"joules are charged by the kilowatt-hour", all, 3600, 7.2e6, asked, 32.6},
		{"what was not asked for costs nothing", all, 3600, 0, tuning.Settings{tuning.Cores: tuning.Number(4)}, 8},
		{"energy that was not measured is not free", all, 3600, unknown, asked, unknown},
		{"energy without a price needs no joules", all.WithoutEnergy(), 3600, unknown, asked, 32},
		{"the dearest resource is charged alone", dearest, 3600, 3.6e6, asked, 20.3},
		{"a whole node costs the same whatever is asked for", all.Fixed(asked), 3600, 0, tuning.Settings{tuning.Cores: tuning.Number(1)}, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.tariff.Price(c.seconds, c.joules, c.settings)
			if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-9 {
				t.Errorf("Price = %g, want %g", got, c.want)
			}
		})
	}
}

func TestOnlyMeasuredJoulesAreCharged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tariff tuning.Tariff
		source string
		want   bool
	}{
		{tuning.Tariff{KWh: 1}, "rapl", true},
		{tuning.Tariff{KWh: 1}, tuning.Modelled, false},
		{tuning.Tariff{KWh: 1, Modelled: true}, tuning.Modelled, true},
		{tuning.Tariff{CoreHour: 1}, "rapl", false},
		{tuning.Tariff{KWh: 1}, tuning.Part(tuning.Modelled, 4), false},
		{tuning.Tariff{KWh: 1, Modelled: true}, tuning.Part("rapl", 4), false},
	} {
		if got := c.tariff.Charges(c.source); got != c.want {
			t.Errorf("%+v charges %s: %t, want %t", c.tariff, c.source, got, c.want)
		}
	}
}

func TestCostLogRatio(t *testing.T) {
	t.Parallel()
	on := func(cores, seconds, joules float64, source string) tuning.Trial {
		out := tuning.Trial{Settings: tuning.Settings{tuning.Cores: tuning.Number(cores)}, Epochs: 3, Seconds: seconds, Source: source}
		if joules > 0 {
			out.Joules = new(tuning.Joules(joules))
		}
		return out
	}
	priced := tuning.Tariff{CoreHour: 1, KWh: 1, Unit: "EUR"} // 3600 core-seconds cost as much as 3.6 MJ
	for _, c := range []struct {
		name      string
		tariff    tuning.Tariff
		own, with tuning.Trial
		want      float64
		ok        bool
	}{
		{"half the cores at the same speed cost half", tuning.DefaultTariff(), on(8, 10, 0, ""), on(4, 10, 0, ""), math.Log(.5), true},
		{"half the cores at half the speed cost the same", tuning.DefaultTariff(), on(8, 10, 0, ""), on(4, 20, 0, ""), 0, true},
		{"joules of one source are charged on both sides", priced, on(2, 3600, 3.6e6, "rapl"), on(1, 3600, 3.6e6, "rapl"), math.Log(2. / 3), true},
		{"energy is free where one side lacks joules", priced, on(2, 3600, 3.6e6, "rapl"), on(1, 3600, 0, ""), math.Log(.5), true},
		{"energy is free where the sources differ", priced, on(2, 3600, 3.6e6, "rapl"), on(1, 3600, 3.6e6, "bmc"), math.Log(.5), true},
		{"modelled joules are free", priced, on(2, 3600, 3.6e6, tuning.Modelled), on(1, 3600, 9e9, tuning.Modelled), math.Log(.5), true},
		{"a job of which no price is known has no ratio", tuning.Tariff{GPUHour: 1}, on(2, 10, 0, ""), on(1, 10, 0, ""), 0, false},
		{"a site that charges energy alone needs joules", tuning.Tariff{KWh: 1}, on(2, 10, 5, "rapl"), on(1, 10, 0, ""), 0, false},
		{"and compares by them", tuning.Tariff{KWh: 1}, on(2, 10, 5, "rapl"), on(1, 10, 10, "rapl"), math.Log(2), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := c.with.LogRatio(c.own, tuning.Measure{Objective: tuning.Cost, Tariff: c.tariff})
			if ok != c.ok || math.Abs(got-c.want) > 1e-12 {
				t.Errorf("LogRatio = %g, %t, want %g, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestMeasuresOfOldPoliciesCountCoreHours(t *testing.T) {
	t.Parallel()
	if got := (tuning.Policy{Objective: tuning.Cost}).Measure().Tariff; got != tuning.DefaultTariff() {
		t.Errorf("a policy without a tariff is measured by %+v", got)
	}
	for objective, want := range map[tuning.Objective]bool{tuning.Energy: true, tuning.Time: false, tuning.Cost: false} {
		if got := (tuning.Policy{Objective: objective}).Measure().NeedsJoules(); got != want {
			t.Errorf("%s needs joules: %t, want %t", objective, got, want)
		}
	}
	if !(tuning.Measure{Objective: tuning.Cost, Tariff: tuning.Tariff{KWh: 1}}).NeedsJoules() {
		t.Error("a cost of energy alone needs no joules")
	}
}
