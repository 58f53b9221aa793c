package adapt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/adapt"
	"pitchpipe/controller/tuning"
)

func taken(left float64, names ...string) []tuning.Taken {
	out := make([]tuning.Taken, len(names))
	for i, n := range names {
		out[i] = tuning.Taken{Name: n, Left: left - float64(i)}
	}
	return out
}

// network makes runs of a kind whose actions gain as much as gains says with all the time there is,
// and cost as much each.
func network(kind string, gains map[string]float64, cost float64, lefts ...float64) []adapt.Run {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	var out []adapt.Run
	names := []string{"a", "b", "c"}
	for _, left := range lefts {
		for _, x := range names {
			for _, y := range names {
				gain := 0.003 * r.NormFloat64()
				for _, n := range []string{x, y} {
					gain += gains[n]*(1-math.Exp(-left/8)) - cost
				}
				out = append(out, adapt.Run{Kind: kind, Actions: taken(left, x, y), Gain: gain})
			}
		}
	}
	return out
}

func TestThePolicy(t *testing.T) {
	t.Parallel()
	offered := []tuning.Offer{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	good := network("k", map[string]float64{"a": 0.10, "b": 0.06}, 0.03, 30, 20, 12)
	for _, tt := range []struct {
		name string
		runs []adapt.Run
		q    adapt.Question
		want []string
	}{
		{"takes the best action as often as it can", good, adapt.Question{Left: 25}, []string{"a", "a"}},
		{"takes the next best where the best is used up", good, adapt.Question{Left: 25, Offered: []tuning.Offer{{Name: "a", Max: 1}, {Name: "b"}}}, []string{"a", "b"}},
		{"counts what was taken", good, adapt.Question{Left: 24, Taken: taken(25, "a"), Decisions: 1, Offered: []tuning.Offer{{Name: "a", Max: 1}, {Name: "b"}}}, []string{"b"}},
		{"does nothing where too little time is left", good, adapt.Question{Left: 2}, nil},
		{"does nothing where every action does harm", network("k", nil, 0.03, 30, 20, 12), adapt.Question{Left: 25}, nil},
		{"does nothing without runs", nil, adapt.Question{Left: 25}, nil},
		{"does nothing where the gain is within the noise", network("k", map[string]float64{"a": 0.0301, "b": 0.0301, "c": 0.0301}, 0.03, 30), adapt.Question{Left: 30}, nil},
		{"takes no action that no run took", good, adapt.Question{Left: 25, Offered: []tuning.Offer{{Name: "new"}}}, nil},
		{"learns from another kind", good, adapt.Question{Kind: "other", Left: 25}, []string{"a", "a"}},
		{
			"believes its own kind more than another", append(network("k", map[string]float64{"a": 0.1}, 0.03, 30, 20), network("other", map[string]float64{"b": 0.1}, 0.03, 30, 20)...),
			adapt.Question{Kind: "other", Left: 25},
			[]string{"b", "b"},
		},
		{"ends with the offers", good, adapt.Question{Left: 25, Offered: []tuning.Offer{}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.q.Kind == "" {
				tt.q.Kind = "k"
			}
			if tt.q.Offered == nil {
				tt.q.Offered = offered
			}
			if tt.q.Decisions == 0 {
				tt.q.Decisions = 2
			}
			c := adapt.Learn(tt.runs).Choose(tt.q)
			if diff := cmp.Diff(tt.want, c.Plan); diff != "" {
				t.Errorf("gain %.3f±%.3f (-want +got):\n%s", c.Gain, c.SD, diff)
			}
		})
	}
}

func TestWhatIsExpectedNearsTheMeanOfManyRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		gain := rapid.Float64Range(-0.5, 0.5).Draw(t, "gain")
		left := rapid.Float64Range(1, 100).Draw(t, "left")
		var runs []adapt.Run
		for i := range rapid.IntRange(20, 40).Draw(t, "runs") {
			runs = append(runs, adapt.Run{Actions: taken(left, "a"), Gain: gain + 0.01*float64(i%2*2-1)})
		}
		got, sd := adapt.Learn(runs).Expect("", taken(left, "a"), nil)
		if math.Abs(got-gain) > 0.02 || sd <= 0 {
			t.Fatalf("expects %g ± %g of runs that gained %g", got, sd, gain)
		}
		if back, _ := adapt.Learn(runs).Expect("", nil, taken(left, "a")); math.Abs(back+got) > 1e-9 {
			t.Fatalf("%g one way, %g the other", got, back)
		}
	})
}

func TestTheMoreKindsDifferTheLessIsSureOfAThird(t *testing.T) {
	t.Parallel()
	sd := func(gains ...float64) float64 {
		var runs []adapt.Run
		for i, g := range gains {
			runs = append(runs, network(fmt.Sprint(i), map[string]float64{"a": g, "b": 0.05 - g}, 0.01, 30, 20, 12)...)
		}
		_, sd := adapt.Learn(runs).Expect("third", taken(20, "a", "b"), taken(20, "b", "c"))
		return sd
	}
	if alike, differ := sd(0.05, 0.05), sd(0.05, -0.05); differ < 4.5*alike {
		t.Errorf("standard deviation %g where kinds differ, %g where they do not", differ, alike)
	}
}

func TestADecisionAboutActions(t *testing.T) {
	t.Parallel()
	q := func(v float64) *float64 { return &v }
	alone, helped := tuning.Adapted{Quality: q(0.6)}, tuning.Adapted{Quality: q(0.7), Taken: taken(15, "widen")}
	worse := tuning.Adapted{Quality: q(0.5), Taken: taken(15, "widen")}
	underWay := tuning.Adapted{Taken: taken(15, "widen")}
	state := func(change func(*tuning.State), past ...tuning.Adapted) tuning.State {
		s := tuning.State{Adaptation: &tuning.Adaptation{Past: past}}
		s.Policy.Mode, s.Policy.Quality, s.Policy.Actions = tuning.Apply, &tuning.Quality{Direction: "max"}, []tuning.Offer{{Name: "widen", Max: 1, Explore: 1}}
		s.EpochsDone, s.EpochsTotal = 4, 20
		change(&s)
		return s
	}
	plain := func(*tuning.State) {}
	for _, tt := range []struct {
		name string
		of   tuning.State
		want string
	}{
		{"waits for a run to compare with", state(plain), "hold own-settings-first"},
		{"tries an action that no run took", state(plain, alone), "adapt action-tried widen=1"},
		{"does not try what a run under way tries", state(plain, alone, underWay), "hold action-doubtful"},
		{"does not try in the second half", state(func(s *tuning.State) { s.EpochsDone = 12 }, alone), "hold action-doubtful"},
		{"does not try where its owner does not let it", state(func(s *tuning.State) { s.Policy.Actions[0].Explore = 0 }, alone), "hold action-doubtful"},
		{"takes what helped", state(plain, alone, helped, helped), "adapt action-known widen=1"},
		{"leaves what did harm", state(plain, alone, worse, worse), "hold action-doubtful"},
		{"takes what lowered a loss", state(func(s *tuning.State) { s.Policy.Quality.Direction = "min" }, alone, worse, worse), "adapt action-known widen=1"},
		{"takes it no more often than its owner lets it", state(func(s *tuning.State) { s.Adaptation.Taken = taken(14, "widen") }, alone, helped, helped), "hold action-doubtful"},
		{"only says so in mode recommend", state(func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, alone, helped, helped), "hold recommend-mode widen=1"},
		{"only says so where the site runs dry", state(func(s *tuning.State) { s.Site.DryRun = true }, alone, helped, helped), "hold dry-run widen=1"},
		{"only says so where the scheduler cannot", state(func(s *tuning.State) { s.Adaptation.Mute = true }, alone, helped, helped), "hold unsupported widen=1"},
		{"does nothing while tuning is paused", state(func(s *tuning.State) { s.Gate = tuning.ReasonPaused }, alone, helped, helped), "hold paused widen=1"},
		{"needs to know how long the job is", state(func(s *tuning.State) { s.EpochsTotal = 0 }, alone, helped), "hold no-total"},
		{"is too late in the last epoch", state(func(s *tuning.State) { s.EpochsDone = 19 }, alone, helped), "hold too-short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := adapt.Decide(tt.of)
			got := fmt.Sprintf("%s %s", d.Action, d.Reason)
			for _, s := range []tuning.Settings{d.Settings, d.Advice} {
				if len(s) > 0 {
					got += " " + s.String()
				}
			}
			if got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, d.Evidence)
			}
		})
	}
}
