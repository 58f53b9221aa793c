package tuning_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// epoch is one of the given length under the given cores.
func epoch(cores int, seconds float64, joules float64, source string) tuning.Epoch {
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	e := tuning.Epoch{
		Start: start, End: start.Add(time.Duration(seconds * float64(time.Second))), Source: source,
		Settings: tuning.Settings{"cores": tuning.Number(float64(cores))},
	}
	if joules > 0 {
		j := tuning.Joules(joules)
		e.Joules = &j
	}
	return e
}

func TestTrialsOf(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{"cores": tuning.Number(1)}
	warm := epoch(1, 100, 0, "rapl")
	warm.Warmup = true
	dirty := epoch(1, 100, 0, "rapl")
	dirty.Polluted = true
	quality := 0.9
	last := epoch(1, 4, 20, "rapl")
	last.Quality = &quality
	trials := tuning.TrialsOf([]tuning.Epoch{
		warm, epoch(2, 1, 5, "rapl"), epoch(1, 2, 10, "rapl"), dirty, epoch(2, 1, 0, ""), last,
		epoch(4, 1, 5, "rapl"), epoch(4, 1, 5, "modelled"), epoch(8, 0, 5, "rapl"),
	}, own)
	if len(trials) != 3 {
		t.Fatalf("%d trials, want those of 2, 1 and 4 cores: %+v", len(trials), trials)
	}
	for i, c := range []struct {
		name      string
		cores     int
		epochs    int
		seconds   float64
		joules    float64 // 0 = not measured
		reference bool
	}{
		{"an epoch without joules leaves its setting without", 2, 2, 1, 0, false},
		{"the owner's own is the reference, without warm-up and polluted epochs", 1, 2, 3, 15, true},
		{"joules of two sources are not added", 4, 2, 1, 0, false},
	} {
		got := trials[i]
		if got.Settings["cores"].Int() != c.cores || got.Epochs != c.epochs || math.Abs(got.Seconds-c.seconds) > 1e-9 || got.Reference != c.reference {
			t.Errorf("%s: %+v", c.name, got)
		}
		if (got.Joules != nil) != (c.joules > 0) || got.Joules != nil && math.Abs(float64(*got.Joules)-c.joules) > 1e-9 {
			t.Errorf("%s: joules %v, want %g", c.name, got.Joules, c.joules)
		}
	}
	if q := trials[1].Quality; q == nil || *q != quality {
		t.Errorf("quality %v, want that of the last epoch", q)
	}
	if want := math.Ln2 / math.Sqrt2; math.Abs(trials[1].SDLog-want) > 1e-12 {
		t.Errorf("spread of ln 2 and ln 4 is %g, want %g", trials[1].SDLog, want)
	}
	if trials[0].SDLog != 0 {
		t.Errorf("equal epochs have the spread %g", trials[0].SDLog)
	}
	ref, ok := tuning.Reference(trials)
	if !ok || !ref.Settings.Equal(own) {
		t.Errorf("reference %+v, %v", ref, ok)
	}
	if _, ok := tuning.Reference(trials[:1]); ok {
		t.Error("there is a reference without the owner's own setting")
	}
	if got := tuning.TrialsOf(nil, own); len(got) != 0 {
		t.Errorf("no epochs gave %+v", got)
	}
}

func TestTrialsCountEveryUsableEpochOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		epochs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) tuning.Epoch {
			e := epoch(rapid.IntRange(1, 3).Draw(t, "cores"), rapid.Float64Range(0.01, 100).Draw(t, "seconds"), 1, "rapl")
			e.Warmup, e.Polluted = rapid.Bool().Draw(t, "warmup"), rapid.Bool().Draw(t, "polluted")
			return e
		})).Draw(t, "epochs")
		usable, seconds := 0, 0.0
		for _, e := range epochs {
			if !e.Warmup && !e.Polluted {
				usable++
				seconds += e.Seconds()
			}
		}
		for _, trial := range tuning.TrialsOf(epochs, nil) {
			usable -= trial.Epochs
			seconds -= trial.Seconds * float64(trial.Epochs)
		}
		if usable != 0 || math.Abs(seconds) > 1e-6 {
			t.Fatalf("%d epochs and %g seconds are missing from the trials", usable, seconds)
		}
	})
}
