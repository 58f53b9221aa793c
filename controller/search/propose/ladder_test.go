package propose

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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
		if got := Climb(tc.full, tc.least, tc.factor, nil); !cmp.Equal(got.Rungs, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got.Rungs, tc.want)
		}
	}
}

func TestPromote(t *testing.T) {
	t.Parallel()
	l := Ladder{Rungs: []int{1, 3, 9}, Factor: 3}
	trial := func(losses ...float64) Trial { return Trial{Losses: losses} }
	for _, tc := range []struct {
		name   string
		trials []Trial
		want   int
	}{
		{"with nothing under way a new one begins", nil, -1},
		{"two of three are too few to promote", []Trial{trial(3), trial(1)}, -1},
		{"of three the best goes on", []Trial{trial(3), trial(1), trial(2)}, 1},
		{"the best went on already", []Trial{trial(3), trial(1, 1), trial(2)}, -1},
		{"the best runs on at this moment", []Trial{trial(3), {Losses: []float64{1}, Running: true}, trial(2)}, -1},
		{"ties go to the earlier", []Trial{trial(1), trial(1), trial(1)}, 0},
		{"the higher rung goes first", []Trial{trial(3, 3), trial(1, 1), trial(2, 2), trial(0), trial(4), trial(5)}, 1},
		{"a failed trial counts as tried and never goes on", []Trial{trial(math.NaN()), trial(math.NaN()), trial(math.NaN())}, -1},
		{"what finished stays", []Trial{trial(1, 1, 1), trial(2), trial(3)}, -1},
	} {
		if got := l.promote(tc.trials); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestOnlyTheBestOfARungGoOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := Ladder{Rungs: []int{1, 4, 16}, Factor: rapid.IntRange(2, 5).Draw(t, "factor")}
		var trials []Trial
		for range rapid.IntRange(0, 20).Draw(t, "trials") {
			trials = append(trials, Trial{Losses: rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 3).Draw(t, "losses")})
		}
		i := l.promote(trials)
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

func TestEachRungRunsOnlyItsBestOn(t *testing.T) {
	t.Parallel()
	losses := []float64{0.5, 0.2, 0.9, 0.4, 0.1, 0.8, 0.3, 0.7, 0.6}
	l := Climb(9, 1, 3, listed{0, 1, 2, 3, 4, 5, 6, 7, 8})
	trials := make([]Trial, 0, len(losses))
	for {
		at, err := l.Next(trials)
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 {
			break
		}
		if at == len(trials) {
			trials = append(trials, Trial{At: at})
		}
		trials[at].Losses = append(trials[at].Losses, losses[at])
	}
	var epochs []int
	for _, trial := range trials {
		epochs = append(epochs, l.Rungs[len(trial.Losses)-1])
	}
	// 1 goes on after the third trial, 4 and 6 when they come; 4 of these three ends.
	if want := []int{1, 3, 1, 1, 9, 1, 3, 1, 1}; !cmp.Equal(epochs, want) {
		t.Errorf("epochs %v, want %v", epochs, want)
	}
}
