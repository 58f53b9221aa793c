package command

import (
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
)

func demoSettings(cores, memory float64) tuning.Settings {
	return tuning.Settings{tuning.Cores: tuning.Number(cores), tuning.Memory: tuning.Number(memory)}
}

func TestRegretIsTheCostOverTheBestProbe(t *testing.T) {
	t.Parallel()
	first := api.Job{Trials: []tuning.Trial{
		{Settings: demoSettings(1, 8), Seconds: 1}, {Settings: demoSettings(2, 8), Seconds: 0.5},
	}}
	for _, c := range []struct {
		name    string
		current tuning.Settings
		want    float64 // NaN: cannot be told
	}{
		{"the best setting has no regret, whatever its memory", demoSettings(2, 1), 1},
		{"the worse one costs twice as much", demoSettings(1, 8), 2},
		{"a setting that was never tried cannot be judged", demoSettings(4, 8), math.NaN()},
	} {
		got := regret(first, api.Job{Current: c.current})
		switch {
		case math.IsNaN(c.want) && got != nil:
			t.Errorf("%s: got %g, want none", c.name, *got)
		case !math.IsNaN(c.want) && (got == nil || *got != c.want):
			t.Errorf("%s: got %v, want %g", c.name, got, c.want)
		}
	}
}

func TestTheMeanIsOverThePairsOnly(t *testing.T) {
	t.Parallel()
	r := demoReport{Jobs: []demoRow{
		compareJobs("a", api.Job{}, api.Job{Seconds: 1}, api.Job{Seconds: 4}),
		compareJobs("b", api.Job{}, api.Job{Seconds: 4}, api.Job{Seconds: 4}),
		aloneJob("short", "c", api.Job{Seconds: 100}),
	}}
	r.finish()
	if math.Abs(r.GeometricMean-0.5) > 1e-12 {
		t.Errorf("got %g, want 0.5", r.GeometricMean)
	}
}

func TestWhatIsMissingIsNotPrintedAsZero(t *testing.T) {
	t.Parallel()
	r := demoReport{Jobs: []demoRow{compareJobs("a", api.Job{}, api.Job{Seconds: 1}, api.Job{Seconds: 4})}}
	text := r.text()
	for _, want := range []string{"4.0 → 1.0", "0       –        –", "JOULES (not measured)", "not classified"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestEpochsAreFoundInTheOutput(t *testing.T) {
	t.Parallel()
	got := epochLine.FindAllStringSubmatch("start\nepoch 1/3 loss 1\nnot epoch 2/3\nepoch 2/3 loss 1\n", -1)
	if len(got) != 2 || got[0][1] != "1" || got[1][1] != "2" {
		t.Errorf("got %v, want epochs 1 and 2", got)
	}
}
