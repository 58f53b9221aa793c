package command

import (
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
)

func demoPair(name string, tuned, untuned api.Job) demoRow {
	return demoRow{Name: name, Tuned: &tuned, Untuned: &untuned}
}

func TestTheMeanIsOverThePairsOnly(t *testing.T) {
	t.Parallel()
	r := demoReport{Jobs: []demoRow{
		demoPair("a", api.Job{Seconds: 1}, api.Job{Seconds: 4}),
		demoPair("b", api.Job{Seconds: 4}, api.Job{Seconds: 4}),
		{Name: "short", First: api.Job{Seconds: 100}},
	}}
	r.finish()
	if math.Abs(r.GeometricMean-0.5) > 1e-12 {
		t.Errorf("got %g, want 0.5", r.GeometricMean)
	}
}

func TestWhatIsMissingIsNotPrintedAsZero(t *testing.T) {
	t.Parallel()
	r := demoReport{Jobs: []demoRow{demoPair("a", api.Job{Seconds: 1}, api.Job{Seconds: 4})}}
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
