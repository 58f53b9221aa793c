package searcher_test

import (
	"math"
	"slices"
	"testing"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
)

func policyOf(knobs ...tuning.Knob) tuning.Policy {
	p := tuning.DefaultPolicy()
	s := tuning.DefaultSearch()
	s.Method, s.Trials, s.Epochs, s.Parallel = tuning.ASHAGP, 27, 9, 1
	p.Search, p.Knobs, p.Quality = &s, knobs, &tuning.Quality{Direction: "max"}
	return p
}

func span(name string) tuning.Knob {
	return tuning.Knob{Name: name, Env: name, Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear}
}

func plan(t *testing.T, p tuning.Policy) searcher.Plan {
	t.Helper()
	out, err := searcher.PlanOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// peak is the value of a trial: best where both knobs are 0.8.
func peak(t *searcher.Trial, epoch int) preview.Epoch {
	x, y := t.Settings["x"].Float()-0.8, t.Settings["y"].Float()-0.8
	return preview.Epoch{Value: (1 - x*x - y*y) * float64(epoch) / 9, Seconds: 1}
}

func TestAnEarlierSearchOfTheSameKnobsSaysWhereToBegin(t *testing.T) {
	t.Parallel()
	first := plan(t, policyOf(span("x"), span("y")))
	past, err := preview.Play(first, preview.Cluster{Epoch: peak})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		policy tuning.Policy
		warm   bool
	}{
		{"the same knobs", policyOf(span("x"), span("y")), true},
		{"other knobs", policyOf(span("x"), span("z")), false},
		{"another measure", func() tuning.Policy {
			p := policyOf(span("x"), span("y"))
			p.Quality.Direction = "min"
			return p
		}(), false},
		{"a method without a model", func() tuning.Policy {
			p := policyOf(span("x"), span("y"))
			p.Search.Method = tuning.ASHA
			return p
		}(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, tt.policy)
			if err := p.Warm([]*searcher.Searcher{past}); err != nil {
				t.Fatal(err)
			}
			if got := p.History != nil; got != tt.warm {
				t.Fatalf("it has a history: %t, want %t", got, tt.warm)
			}
			if !tt.warm {
				return
			}
			best := p.History[0]
			least := slices.Index(best, slices.Min(best))
			if x := p.Settings[least]; x["x"].Float() < 0.6 || x["y"].Float() < 0.6 {
				t.Errorf("%s is expected to be best, want both near 0.8", x)
			}
		})
	}
}

func TestASpaceLeavesOutWhatItsConditionsLeaveOut(t *testing.T) {
	t.Parallel()
	momentum := span("momentum")
	momentum.When = &tuning.Condition{Knob: "optimizer", Value: tuning.Word("sgd")}
	for _, s := range searcher.Candidates([]tuning.Knob{{Name: "optimizer", Env: "O", Values: []tuning.Value{tuning.Word("sgd"), tuning.Word("adam")}}, momentum}, 50, 1) {
		if s["momentum"].IsSet() != (s["optimizer"] == tuning.Word("sgd")) {
			t.Errorf("%s", s)
		}
	}
}

func TestRangesOfPow2GiveDoublings(t *testing.T) {
	t.Parallel()
	k := tuning.Knob{Name: "batch", Env: "B", Min: tuning.Number(64), Max: tuning.Number(4096), Scale: tuning.Pow2}
	for _, s := range searcher.Candidates([]tuning.Knob{k}, 50, 1) {
		if !slices.Contains(k.Candidates(math.MaxInt), s["batch"]) {
			t.Errorf("%s", s)
		}
	}
}

func TestASearchHasSettingsForAllOfItsTrials(t *testing.T) {
	t.Parallel()
	rate := tuning.Knob{Name: "lr", Env: "LR", Min: tuning.Number(1e-5), Max: tuning.Number(1), Scale: tuning.Log}
	few := tuning.Knob{Name: "lr", Env: "LR", Values: []tuning.Value{tuning.Number(0.1), tuning.Number(0.01), tuning.Number(0.001)}}
	for most, knob := range map[int]tuning.Knob{2000: rate, 3: few} {
		p := policyOf(knob)
		p.Search.Trials = 2000
		if got := plan(t, p); len(got.Settings) < most || got.Trials != most {
			t.Errorf("%d trials with %d settings, want %d", got.Trials, len(got.Settings), most)
		}
	}
}
