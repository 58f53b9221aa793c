package models

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func costing(of map[string][]float64) *factorial {
	s := &factorial{runs: map[string]map[int]trial{}}
	for key, all := range of {
		s.runs[key] = map[int]trial{}
		for r, v := range all {
			s.runs[key][r] = trial{cost: math.Log(v)}
		}
	}
	return s
}

// Two settings that are alike: each was lucky once. The lucky run is not the optimum
// that the other is held against.
func TestALuckyRunIsNoOptimum(t *testing.T) {
	t.Parallel()
	s := costing(map[string][]float64{"a": {1, 2}, "b": {2, 1}})
	for _, c := range []struct {
		key   string
		judge int
		want  float64 // by hand: own cost there over that of what was cheapest in the other
	}{{"a", 0, 0.5}, {"a", 1, 2.0 / 2}, {"b", 0, 2.0 / 2}, {"b", 1, 0.5}} {
		if v := s.regret(c.key, c.judge); !(math.Abs(math.Exp(v)-c.want) <= 1e-12) {
			t.Errorf("%s in repeat %d: %v, want %v", c.key, c.judge, math.Exp(v), c.want)
		}
	}
	if v := s.hindsight("b"); !(math.Abs(v) <= 1e-12) {
		t.Errorf("in hindsight they are alike, got %v", v)
	}
}

func TestAProbeIsWhatOneRepeatSaysAndNothingWhereNoneWasMade(t *testing.T) {
	t.Parallel()
	s := costing(map[string][]float64{"a": {1, 5}, "b": {2, 1}})
	for repeat, want := range []string{"a", "b", ""} {
		if got := s.cheapest(s.keys(), []int{repeat}); got != want {
			t.Errorf("repeat %d: %q, want %q", repeat, got, want)
		}
	}
}

func TestARepeatThatWasNotMadeJudgesNothing(t *testing.T) {
	t.Parallel()
	s := costing(map[string][]float64{"a": {1, 1, 1}, "b": {2, 2}, "c": {0.1}})
	if v := s.regret("b", 2); !math.IsNaN(v) {
		t.Error("b was not run in repeat 2")
	}
	if v := s.regret("b", 0); !(math.Abs(v-math.Ln2) <= 1e-12) {
		t.Errorf("%v: c was run once and is no optimum", v)
	}
	if got := s.cheapest(s.keys(), []int{0, 1}); got != "a" {
		t.Errorf("cheapest %q", got)
	}
}

func TestTheBestSingleSettingCountsAllInputsAlike(t *testing.T) {
	t.Parallel()
	long := costing(map[string][]float64{"a": {1000, 1000}, "b": {1100, 1100}})
	short := costing(map[string][]float64{"a": {2, 2}, "b": {1, 1}})
	if got := single([]*factorial{long, short}); got != "b" {
		t.Errorf("got %q: ten per cent of the long one are less than half of the short one", got)
	}
	partly := costing(map[string][]float64{"a": {1, 1}})
	if got := single([]*factorial{short, partly}); got != "a" {
		t.Errorf("got %q, which not all were run under", got)
	}
}

// Where a setting is cheapest in every repeat nothing has less regret, and its own is 1.
func TestWhatIsAlwaysBestHasNoRegret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "repeats")
		of := map[string][]float64{}
		for _, key := range []string{"a", "b", "c"} {
			for range n {
				v := rapid.Float64Range(1, 100).Draw(t, key)
				if key == "b" {
					v /= 200
				}
				of[key] = append(of[key], v)
			}
		}
		s := costing(of)
		for r := range n {
			for key := range of {
				v := s.regret(key, r)
				if !(v >= 0) || (key == "b") != (v == 0) {
					t.Fatalf("%s in %d: %v", key, r, v)
				}
			}
		}
	})
}
