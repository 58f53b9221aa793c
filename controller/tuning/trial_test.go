package tuning_test

import (
	"math"
	"slices"
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
	last.Quality, last.Number = &quality, 3
	trials := tuning.TrialsOf([]tuning.Epoch{
		epoch(2, 1, 5, "rapl"), warm, epoch(1, 2, 10, "rapl"), dirty, epoch(2, 1, 0, ""), last,
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
	if q := trials[1].Quality; q == nil || *q != quality || trials[1].QualityOf != 3 {
		t.Errorf("quality %v of epoch %d, want that of the last epoch", q, trials[1].QualityOf)
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

func TestHarmIsNeverNoise(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{"cores": tuning.Number(1)}
	with := func(e tuning.Epoch, change func(*tuning.Epoch)) tuning.Epoch { change(&e); return e }
	polluted := func(e *tuning.Epoch) { e.Polluted = true }
	for _, c := range []struct {
		name      string
		epochs    []tuning.Epoch
		measured  bool // there is a trial of 2 cores
		clean     int
		disturbed int
		seconds   float64
	}{
		{"disturbed epochs that are ninefold longer make a setting worse", []tuning.Epoch{
			epoch(1, 1, 0, ""), epoch(2, 0.9, 0, ""), with(epoch(2, 9, 0, ""), polluted), with(epoch(2, 9, 0, ""), polluted),
		}, true, 1, 2, (0.9 + 2*0.25*9) / 1.5},
		{"disturbed epochs never make it better", []tuning.Epoch{
			epoch(1, 1, 0, ""), epoch(2, 0.9, 0, ""), with(epoch(2, 0.5, 0, ""), polluted),
		}, true, 1, 0, 0.9},
		{"disturbed epochs of the owner's settings do not make these worse", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(1, 9, 0, ""), polluted), epoch(2, 0.9, 0, ""),
		}, true, 1, 0, 0.9},
		{"a setting with nothing but far longer disturbed epochs has a trial", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(2, 9, 0, ""), polluted),
		}, true, 0, 1, 9},
		{"one with a little longer ones has none", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(2, 1.2, 0, ""), polluted),
		}, false, 0, 0, 0},
		{"an epoch that was cut counts by the time that it had", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(2, 6, 0, ""), func(e *tuning.Epoch) { e.Cut, e.Warmup = true, true }),
		}, true, 0, 1, 6},
		{"a far longer warm-up counts where there is nothing else", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(2, 9, 0, ""), func(e *tuning.Epoch) { e.Warmup = true }),
		}, true, 0, 1, 9},
		{"and not beside clean epochs", []tuning.Epoch{
			epoch(1, 1, 0, ""), with(epoch(2, 9, 0, ""), func(e *tuning.Epoch) { e.Warmup = true }), epoch(2, 0.9, 0, ""),
		}, true, 1, 0, 0.9},
		{"without a reference nothing is known to be worse", []tuning.Epoch{with(epoch(2, 9, 0, ""), polluted)}, false, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, got := range tuning.TrialsOf(c.epochs, own) {
				if got.Reference {
					if got.Seconds != 1 || got.Disturbed != 0 {
						t.Errorf("the reference is %+v", got)
					}
					continue
				}
				if !c.measured || got.Epochs != c.clean || got.Disturbed != c.disturbed || math.Abs(got.Seconds-c.seconds) > 1e-9 {
					t.Errorf("the trial is %+v", got)
				}
				c.measured = false
			}
			if c.measured {
				t.Error("there is no trial")
			}
		})
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
		// Where disturbed epochs count, a mean holds them too.
		mixed := slices.ContainsFunc(tuning.TrialsOf(epochs, nil), func(t tuning.Trial) bool { return t.Disturbed > 0 })
		if usable != 0 || !mixed && math.Abs(seconds) > 1e-6 {
			t.Fatalf("%d epochs and %g seconds are missing from the trials", usable, seconds)
		}
	})
}

func TestWhatGrowsByItselfIsNoEffectOfASetting(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{"cores": tuning.Number(2)}
	course := func(drift float64, halved int) []tuning.Epoch {
		var out []tuning.Epoch
		for i := range 60 {
			cores := 2
			if i >= 3 {
				cores = halved
			}
			e := epoch(cores, 10*math.Exp(drift*float64(i)), 100, "rapl")
			e.Number = i + 1
			out = append(out, e)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		drift float64
	}{
		{"epochs that stay as they are", 0},
		{"epochs that grow longer by a half", 0.006},
		{"epochs that grow shorter", -0.005},
	} {
		trials := tuning.TrialsOf(course(c.drift, 1), own)
		last := 10 * math.Exp(c.drift*59)
		for _, x := range trials {
			if got := math.Log(x.Seconds / last); math.Abs(got) > 0.02 {
				t.Errorf("%s: under %v an epoch takes %g of what the last one took, want as long", c.name, x.Settings, math.Exp(got))
			}
		}
		if got := trials[1].Trend - trials[0].Trend; math.Abs(got-30*c.drift) > 0.02 {
			t.Errorf("%s: its trend made %g of the difference, want %g", c.name, got, 30*c.drift)
		}
	}
}

func TestWhatIsNoTrendMovesTheReferenceLittle(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{"cores": tuning.Number(1)}
	var epochs []tuning.Epoch
	for i := range 80 {
		e := epoch(1, 1.5, 0, "")
		if i >= 5 { // thirty times as fast, and faster and faster as it warms up
			e = epoch(3, 0.05+2*math.Exp(-float64(i-5)/8), 0, "")
		}
		e.Number = i + 1
		epochs = append(epochs, e)
	}
	reference, ok := tuning.Reference(tuning.TrialsOf(epochs, own))
	if !ok || math.Abs(math.Log(reference.Seconds/1.5)) > 0.41 {
		t.Errorf("the owner's epochs of 1.5 s are taken for %g s", reference.Seconds)
	}
}

func TestWhatIsUnknownOfATrendWidensTheErrorOfWhatWasMeasuredLongAfterTheReference(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{"cores": tuning.Number(4)}
	// The owner's settings for four epochs, two cores for four, and one core for the rest.
	under := func(epochs int) map[string]float64 {
		var all []tuning.Epoch
		for i := range epochs {
			e := epoch(max(1, 4-2*(i/4)), 10, 0, "")
			e.Number = i + 1
			all = append(all, e)
		}
		out := map[string]float64{}
		for _, x := range tuning.TrialsOf(all, own) {
			out[x.Settings["cores"].String()] = x.TrendSD
		}
		return out
	}
	few, many := under(12), under(100)
	if few["4"] != 0 || !(few["2"] > 0) || !(few["1"] > few["2"]) {
		t.Errorf("after 12 epochs %v, want more for one core than for two, and none for the owner's", few)
	}
	if !(many["2"] < few["2"]/10) {
		t.Errorf("after 100 epochs %v, want little, since the last 92 show the trend", many)
	}
	all := tuning.Trial{Epochs: 9, TrendSD: 0.3}
	if got := all.RatioError(tuning.Trial{Epochs: 9}, 0.4); math.Abs(got-math.Hypot(0.4*math.Sqrt(2)/3, 0.3)) > 1e-12 {
		t.Errorf("the error of the ratio is %g", got)
	}
}
