package tuning_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func TestQuantilesLieBetweenTheirNeighbours(t *testing.T) {
	t.Parallel()
	if got := [...]float64{tuning.Quantile(nil, 0.5), tuning.Median[float64](nil), tuning.Last([]float64{})}; got != [3]float64{} {
		t.Errorf("of no numbers %v, want 0", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 9).Draw(t, "x")
		low, high := rapid.Float64Range(-0.5, 1.5).Draw(t, "low"), rapid.Float64Range(0, 1).Draw(t, "more")
		a, b := tuning.Quantile(x, low), tuning.Quantile(x, low+high)
		if a > b+1e-9 || a < slices.Min(x)-1e-9 || b > slices.Max(x)+1e-9 {
			t.Fatalf("quantiles %g and %g of %v", a, b, x)
		}
		if half, middle := tuning.Quantile(x, 0.5), tuning.Median(x); math.Abs(half-middle) > 1e-9 {
			t.Fatalf("the half quantile of %v is %g, its median %g", x, half, middle)
		}
		if n := tuning.Count(x, func(v float64) bool { return v <= a+1e-9 }); low >= 0 && float64(n) < math.Floor(min(low, 1)*float64(len(x)-1)) {
			t.Fatalf("%d of %v are at most the quantile %g", n, x, low)
		}
	})
}

func TestMoreEpochsMakeARatioSurer(t *testing.T) {
	t.Parallel()
	few, many := tuning.Trial{Epochs: 2, SDLog: 0.2}, tuning.Trial{Epochs: 20, SDLog: 0.2}
	usual, noisy := tuning.EpochSD(), tuning.EpochSD(many)
	if !(usual < noisy && noisy < 0.2) {
		t.Errorf("epochs differ by %g as usual and by %g as measured, want more and less than 0.2", usual, noisy)
	}
	if a, b := many.RatioError(many, noisy), few.RatioError(many, noisy); !(a < b) {
		t.Errorf("errors %g of many epochs and %g of few", a, b)
	}
	disturbed := few
	disturbed.Disturbed = 3
	if !(disturbed.Weight() > few.Weight() && disturbed.Weight() < few.Weight()+3) {
		t.Errorf("disturbed epochs weigh %g, want more than nothing and less than clean ones", disturbed.Weight()-few.Weight())
	}
	old := tuning.Effect{Runs: 4, Age: 90}
	if old.Fresh() != 2 || tuning.Aged(-1) != 1 {
		t.Errorf("four runs of three months ago are worth %g, and one of tomorrow %g; want 2 and 1", old.Fresh(), tuning.Aged(-1))
	}
}

func TestSmallQuestions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hour := tuning.Span{From: at, To: at.Add(time.Hour)}
	cores, memory := tuning.Settings{tuning.Cores: tuning.Number(2)}, tuning.Settings{tuning.Memory: tuning.Number(1)}
	both := cores.With(tuning.Memory, tuning.Number(1))
	width := both.With("width", tuning.Number(3))
	policy := tuning.Policy{Knobs: []tuning.Knob{{Name: tuning.Cores}, {Name: tuning.Threads, Follows: tuning.Cores}, {Name: "width"}}}
	follows := both.With(tuning.Threads, tuning.Number(8))
	search := tuning.DefaultSearch()
	small := tuning.Search{Trials: 4}
	one, two, four := tuning.Epoch{Number: 1}, tuning.Epoch{Number: 2}, tuning.Epoch{Number: 4}
	when := &tuning.Condition{Knob: "width", Value: tuning.Number(3)}
	known := tuning.Exactly(3)
	free := tuning.State{Policy: tuning.Policy{Mode: tuning.Apply}, Adaptation: &tuning.Adaptation{}}
	may := func(change func(*tuning.State)) tuning.Reason {
		s := free
		change(&s)
		return s.MayAdapt()
	}
	taken := []tuning.Taken{{Name: "widen"}, {Name: "deepen"}, {Name: "widen"}}
	for name, is := range map[string]bool{
		"a span meets what begins within it":           tuning.Meet([]tuning.Span{hour}, at.Add(time.Minute), at.Add(2*time.Hour)),
		"it does not meet what begins at its end":      !tuning.Meet([]tuning.Span{hour}, hour.To, hour.To.Add(1)),
		"memory alone is no other work":                both.EqualButMemory(cores) && !both.Equal(cores),
		"the shape is cores and threads":               follows.Shape().Equal(follows.WithoutMemory()) && len(memory.Shape()) == 0,
		"what follows cores differs in cores alone":    policy.CoresAlone(cores, follows),
		"another knob does not":                        !policy.CoresAlone(cores, width),
		"all knobs are named once, in order":           slices.Equal(tuning.Knobs([]tuning.Settings{width, cores}), []string{tuning.Cores, tuning.Memory, "width"}),
		"a search tolerates a quarter of its trials":   search.MostFailures() == search.Trials/4,
		"and three of a small one":                     small.MostFailures() == 3,
		"its failures are named":                       tuning.Search{Failures: 1}.MostFailures() == 1,
		"a condition holds for its value":              when.Holds(width) && !when.Holds(cores),
		"none always holds":                            (*tuning.Condition)(nil).Holds(nil),
		"a gap breaks epochs":                          !tuning.Unbroken([]tuning.Epoch{two, four}) && tuning.Unbroken([]tuning.Epoch{two, one}),
		"no epochs are unbroken":                       tuning.Unbroken(nil),
		"epochs are ordered by number":                 one.Compare(two) < 0 && two.Compare(two) == 0,
		"few samples are poor":                         tuning.Profile{Flags: []tuning.Flag{tuning.FlagFewSamples}}.Poor(),
		"a certain estimate has no width":              known.Times(2) == tuning.Estimate{Value: 6, Low: 6, High: 6},
		"a number that cannot be stored is not finite": known.IsFinite() && !tuning.Exactly(math.NaN()).IsFinite(),
		"a forecast without a reason says how long":    (&tuning.Forecast{Epochs: &known, Seconds: &known}).IsKnown(),
		"no forecast is unknown":                       !(*tuning.Forecast)(nil).IsKnown(),
		"an action is counted":                         tuning.Times(taken, "widen") == 2 && len(tuning.Names(taken)) == 3,
		"a job in mode apply may take one":             free.MayAdapt() == tuning.ReasonNone,
		"an observed one may not":                      may(func(s *tuning.State) { s.Policy.Mode = tuning.Observe }) == tuning.ReasonObserveMode,
		"nor one that gets advice":                     may(func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }) == tuning.ReasonRecommend,
		"nor any on a site that tries itself out":      may(func(s *tuning.State) { s.Site.DryRun = true }) == tuning.ReasonDryRun,
		"nor a paused one":                             may(func(s *tuning.State) { s.Gate = tuning.ReasonPaused }) == tuning.ReasonPaused,
		"nor where the scheduler cannot hand one over": may(func(s *tuning.State) { s.Adaptation = &tuning.Adaptation{Mute: true} }) == tuning.ReasonUnsupported,
		"values are ordered by number, then by text":   tuning.Number(2).Compare(tuning.Number(10)) < 0 && tuning.Word("a").Compare(tuning.Word("b")) < 0,
	} {
		if !is {
			t.Errorf("not so: %s", name)
		}
	}
}

func TestWhatIsMinimisedGrowsWithWhatWorkTakes(t *testing.T) {
	t.Parallel()
	for _, m := range []tuning.Measure{
		{Objective: tuning.Energy},
		{Objective: tuning.Time},
		{Objective: tuning.EDP},
		{Objective: tuning.Blend, Weight: 0.3},
		{Objective: tuning.Cost, Tariff: tuning.Tariff{CoreHour: 1}},
	} {
		once := m.Spent(100, 1000, tuning.Settings{tuning.Cores: tuning.Number(2)})
		if one, two := m.Log(once), m.Log(once.Plus(once)); math.Abs(two-one-m.Degree()*math.Ln2) > 1e-9 || m.Log(once.Times(2)) != two {
			t.Errorf("%s: the logarithm of twice as much is %g, of once %g", m.Objective, two, one)
		}
	}
}
