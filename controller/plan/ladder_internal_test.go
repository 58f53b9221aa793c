package plan

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// rungs are settings of fewer and fewer cores below 16, each with how likely it keeps the
// limit; it saves what it frees.
func rungs(kept ...float64) ladder {
	l := ladder{{kept: 1}}
	for i, k := range kept {
		cores := 16 - 2*float64(i+1)
		l = append(l, rung{settings: tuning.Settings{tuning.Cores: tuning.Number(cores)}, kept: k, saves: 1 - cores/16})
	}
	return l
}

func TestProbesAreTakenWhereASequenceOfThemSavesMost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ladder  ladder
		probes  int
		restart float64
		cores   float64 // 0: none
	}{
		"what surely keeps the limit is taken whole":                      {rungs(1, 1, 1, 1), 1, 0, 8},
		"one probe takes what it saves times how likely that is":          {rungs(1, .9, .7, .2), 1, 0, 10},
		"one probe goes where little can go wrong":                        {rungs(1, .99, .45, .42), 1, .01, 12},
		"with a second one it goes further first, since it can come back": {rungs(1, .99, .45, .42), 2, .01, 8},
		"a probe that costs more than it can save is not made":            {rungs(.1, .1), 4, .2, 0},
		"no probe is left": {rungs(1, 1), 0, 0, 0},
		"a setting beyond an unlikely one is no more likely than that":      {rungs(.9, .01, 1), 1, 0, 14},
		"a second probe that costs more than it can save is not counted on": {rungs(1, .99, .45, .42), 2, .2, 12},
		"there is nothing to probe":                                         {rungs(), 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, first := c.ladder.climb(16, c.probes, c.restart)
			if got := first[tuning.Cores].Float(); got != c.cores || (value > 0) != (c.cores > 0) {
				t.Errorf("first %g, expected to save %g; want %g", got, value, c.cores)
			}
		})
	}
}

func TestAFurtherProbeIsNeverExpectedToSaveLess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1)
		kept := rapid.SliceOfN(share, 0, 7).Draw(t, "kept")
		restart := share.Draw(t, "restart") / 10
		before := 0.0
		for probes := range 5 {
			value, _ := rungs(kept...).climb(16, probes, restart)
			if value < before-1e-12 || math.IsNaN(value) || value > 1 {
				t.Fatalf("%d probes save %g, one less %g", probes, value, before)
			}
			before = value
		}
	})
}
