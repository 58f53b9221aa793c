package search

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func drawPolicy(t *rapid.T) (tuning.Policy, tuning.Settings) {
	own := tuning.Settings{tuning.Cores: tuning.Number(float64(rapid.IntRange(1, 8).Draw(t, "own_cores")))}
	values := rapid.SliceOfNDistinct(rapid.Float64Range(1, 9), 1, 4, rapid.ID)
	p := policy(tuning.Knob{Name: tuning.Cores, Values: nums(values.Draw(t, "cores")...)})
	if rapid.Bool().Draw(t, "threads") {
		p.Knobs = append(p.Knobs, tuning.Knob{Name: tuning.Threads, Env: "T", Follows: tuning.Cores})
	}
	if rapid.Bool().Draw(t, "batch") {
		p.Knobs = append(p.Knobs, tuning.Knob{
			Name: "batch", Env: "B", Min: tuning.Number(1), Max: tuning.Number(256), Scale: tuning.Pow2, Default: tuning.Number(32),
			Quality: rapid.SampledFrom([]string{"", tuning.QualitySame}).Draw(t, "quality of batch"),
		})
	}
	if rapid.Bool().Draw(t, "memory") {
		p.Knobs = append(p.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1), Max: tuning.Number(9)})
	}
	if rapid.Bool().Draw(t, "guard") {
		p = guarded(p)
	}
	if rapid.Bool().Draw(t, "slowdown") {
		p.MaxSlowdown = 1.2
	}
	p.Objective = rapid.SampledFrom(tuning.Objectives()).Draw(t, "objective")
	p.Weight = rapid.Float64Range(0, 1).Draw(t, "weight")
	p.Budget.Probes = rapid.IntRange(0, 40).Draw(t, "probes")
	return p, own
}

func TestNextNeverRepeatsNeverLeavesTheSpaceAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, own := drawPolicy(t)
		w := world(func(tuning.Settings) (float64, float64) {
			return rapid.Float64Range(.1, 100).Draw(t, "seconds"), rapid.Float64Range(.1, 100).Draw(t, "joules")
		})
		tried, s, end := explore(p, own, w)
		if end == tuning.ReasonNone {
			t.Fatal("does not end")
		}
		if len(tried) > p.Budget.Probes {
			t.Fatalf("%d probes, budget %d", len(tried), p.Budget.Probes)
		}
		unique := slices.Compact(slices.Sorted(slices.Values(tried)))
		if len(unique) != len(tried) || slices.Contains(tried, own.Key()) {
			t.Fatalf("repeated: %v", tried)
		}
		for _, trial := range s.Trials[1:] {
			if knob, ok := p.Permits(own, trial.Settings); !ok {
				t.Fatalf("%v: %s is outside of what the policy permits", trial.Settings, knob)
			}
			if _, changed := trial.Settings[tuning.Memory]; changed {
				t.Fatalf("%v: memory was probed", trial.Settings)
			}
			if p.Relearns(own, trial.Settings) {
				t.Fatalf("%v: a hyperparameter was probed within a run", trial.Settings)
			}
		}
	})
}

func TestTheSameTrialsGiveTheSameNextInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, own := drawPolicy(t)
		w := world(func(tuning.Settings) (float64, float64) {
			return rapid.Float64Range(.1, 100).Draw(t, "seconds"), rapid.Float64Range(.1, 100).Draw(t, "joules")
		})
		_, s, _ := explore(p, own, w)
		s.Trials = s.Trials[:rapid.IntRange(0, len(s.Trials)).Draw(t, "kept")]
		next, reason := s.Next()
		s.Trials = rapid.Permutation(s.Trials).Draw(t, "shuffled")
		again, reasonAgain := s.Next()
		if !next.Equal(again) || reason != reasonAgain {
			t.Fatalf("%v (%s), shuffled %v (%s)", next, reason, again, reasonAgain)
		}
	})
}

func TestKnobsOfASpaceAreUnique(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, own := drawPolicy(t)
		names := knobs(Space(p, own, 5))
		if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Fatalf("%v", names)
		}
	})
}
