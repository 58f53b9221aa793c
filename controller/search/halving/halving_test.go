package halving_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/search/halving"
)

func TestClimb(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                string
		full, least, factor int
		want                []int
	}{
		{"rungs lie a factor apart below the full run", 81, 1, 3, []int{1, 3, 9, 27, 81}},
		{"the lowest has the least number of epochs", 52, 5, 3, []int{6, 17, 52}},
		{"a run of one epoch has one rung", 1, 1, 3, []int{1}},
		{"a factor below 2 is 2", 4, 1, 0, []int{1, 2, 4}},
		{"a full run is never cut below its least", 10, 20, 3, []int{10}},
	} {
		if got := halving.Climb(tc.full, tc.least, tc.factor); !cmp.Equal(got.Rungs, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got.Rungs, tc.want)
		}
	}
}

func TestPromote(t *testing.T) {
	t.Parallel()
	l := halving.Ladder{Rungs: []int{1, 3, 9}, Factor: 3}
	trial := func(losses ...float64) halving.Trial { return halving.Trial{Losses: losses} }
	for _, tc := range []struct {
		name   string
		trials []halving.Trial
		want   int
	}{
		{"with nothing under way a new one begins", nil, -1},
		{"two of three are too few to promote", []halving.Trial{trial(3), trial(1)}, -1},
		{"of three the best goes on", []halving.Trial{trial(3), trial(1), trial(2)}, 1},
		{"the best went on already", []halving.Trial{trial(3), trial(1, 1), trial(2)}, -1},
		{"ties go to the earlier", []halving.Trial{trial(1), trial(1), trial(1)}, 0},
		{"the higher rung goes first", []halving.Trial{trial(3, 3), trial(1, 1), trial(2, 2), trial(0), trial(4), trial(5)}, 1},
		{"a failed trial counts as tried and never goes on", []halving.Trial{trial(math.NaN()), trial(math.NaN()), trial(math.NaN())}, -1},
		{"what finished stays", []halving.Trial{trial(1, 1, 1), trial(2), trial(3)}, -1},
	} {
		if got := l.Promote(tc.trials); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestASearchNeverPaysMoreThanItsBudgetAndPromotesTheBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.IntRange(1, 30).Draw(t, "epochs")
		l := halving.Climb(full, rapid.IntRange(1, 5).Draw(t, "least"), rapid.IntRange(2, 4).Draw(t, "factor"))
		n := rapid.IntRange(1, 15).Draw(t, "settings")
		quality := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "quality")
		pace := rapid.SliceOfN(rapid.Float64Range(0.1, 3), n, n).Draw(t, "pace")
		broken := rapid.IntRange(0, 40).Draw(t, "broken")
		budget := rapid.Float64Range(0, 200).Draw(t, "budget")
		paid := 0.0
		next := map[int]int{}
		r := l.Run(budget, func(trials []halving.Trial) int {
			if len(trials) == n {
				return -1
			}
			return len(trials)
		}, func(at, epoch int) halving.Epoch {
			if epoch != next[at]+1 {
				t.Fatalf("epoch %d of %d after %d: no epoch is run twice or left out", epoch, at, next[at])
			}
			next[at] = epoch
			if paid+pace[at] <= budget {
				paid += pace[at]
			}
			return halving.Epoch{Loss: quality[at] + 1/float64(epoch), Seconds: pace[at], Failed: at+epoch == broken}
		})
		if r.Seconds > budget || math.Abs(r.Seconds-paid) > 1e-9 {
			t.Fatalf("%g seconds of %g, epochs cost %g", r.Seconds, budget, paid)
		}
		if r.Best < 0 && !math.IsInf(r.Loss, 1) || r.Best >= 0 && math.IsInf(r.Loss, 1) {
			t.Fatalf("best %d with loss %g", r.Best, r.Loss)
		}
		for i, trial := range r.Trials {
			if k := len(trial.Losses); k > 1 && slices.ContainsFunc(trial.Losses[:k-1], math.IsNaN) {
				t.Fatalf("trial %d went on after it failed: %v", i, trial.Losses)
			}
		}
	})
}

func TestOnlyTheBestOfARungGoOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := halving.Ladder{Rungs: []int{1, 4, 16}, Factor: rapid.IntRange(2, 5).Draw(t, "factor")}
		var trials []halving.Trial
		for range rapid.IntRange(0, 20).Draw(t, "trials") {
			trials = append(trials, halving.Trial{Losses: rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 3).Draw(t, "losses")})
		}
		i := l.Promote(trials)
		if i < 0 {
			return
		}
		rung := len(trials[i].Losses) - 1
		if rung < 0 || rung == len(l.Rungs)-1 {
			t.Fatalf("trial %d of rung %d goes on", i, rung)
		}
		there, better := 0, 0
		for _, trial := range trials {
			if len(trial.Losses) > rung {
				there++
				if trial.Losses[rung] < trials[i].Losses[rung] {
					better++
				}
			}
		}
		if better >= there/l.Factor {
			t.Fatalf("%d of %d are better than what goes on: %v", better, there, trials)
		}
	})
}

func TestAllSettingsKnownTheBestWins(t *testing.T) {
	t.Parallel()
	l := halving.Climb(9, 1, 3)
	losses := []float64{0.5, 0.2, 0.9, 0.4, 0.1, 0.8, 0.3, 0.7, 0.6}
	r := l.Run(1000, func(trials []halving.Trial) int {
		if len(trials) == len(losses) {
			return -1
		}
		return len(trials)
	}, func(at, _ int) halving.Epoch { return halving.Epoch{Loss: losses[at], Seconds: 1} })
	var epochs []int
	for _, trial := range r.Trials {
		epochs = append(epochs, l.Rungs[len(trial.Losses)-1])
	}
	// 1 goes on after the third trial, 4 and 6 when they come; 1 of these three ends.
	want := []int{1, 3, 1, 1, 9, 1, 3, 1, 1}
	if r.Best != 4 || r.Loss != 0.1 || !cmp.Equal(epochs, want) {
		t.Errorf("best %d with %g, epochs %v; want 4 with 0.1, %v", r.Best, r.Loss, epochs, want)
	}
	if r.Seconds != 6*1+2*3+9 {
		t.Errorf("%g seconds: a trial that goes on pays only its new epochs", r.Seconds)
	}
}

func TestTheBudgetMayEndWithinARun(t *testing.T) {
	t.Parallel()
	l := halving.Ladder{Rungs: []int{10}, Factor: 3}
	r := l.Run(4.5, func([]halving.Trial) int { return 7 }, func(_, n int) halving.Epoch {
		return halving.Epoch{Loss: 1 / float64(n), Seconds: 1}
	})
	if r.Best != 7 || r.Loss != 0.25 || r.Seconds != 4 || len(r.Trials[0].Losses) != 0 {
		t.Errorf("%+v: want the fourth epoch of 7 and no rung", r)
	}
}
