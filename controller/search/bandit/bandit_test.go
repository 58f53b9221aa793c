package bandit_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/search/bandit"
	"pitchpipe/controller/search/design"
)

func factorial(a, b int) [][]int {
	var out [][]int
	for i := range a {
		for j := range b {
			out = append(out, []int{i, j})
		}
	}
	return out
}

func TestABanditNeverRepeatsItselfAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		levels := factorial(rapid.IntRange(1, 4).Draw(t, "a"), rapid.IntRange(1, 4).Draw(t, "b"))
		s := bandit.Search{Levels: levels, Prior: bandit.DefaultPrior()}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var seen []design.Seen
		tried := map[int]bool{}
		for range levels {
			at := s.Next(seen, rng)
			if at < 0 || at >= len(levels) || tried[at] {
				t.Fatalf("next %d, tried %v", at, tried)
			}
			tried[at] = true
			seen = append(seen, design.Seen{At: at, Log: rapid.Float64Range(-2, 2).Draw(t, "y"), Failed: rapid.Bool().Draw(t, "failed")})
		}
		if at := s.Next(seen, rng); at != -1 {
			t.Fatalf("all were measured and %d is next", at)
		}
	})
}

func TestABanditLearnsWhichLevelsAreGood(t *testing.T) {
	t.Parallel()
	levels := factorial(8, 8)
	effects := [2][]float64{{1, 2, 0, 1, 2, 1, 2, 1}, {2, 1, 1, 2, 1, 0, 2, 1}}
	hits := 0
	const seeds, measured, good = 50, 24, 2*8 + 5
	for seed := range uint64(seeds) {
		s := bandit.Search{Levels: levels, Prior: bandit.DefaultPrior()}
		rng := rand.New(rand.NewPCG(seed, 1))
		var seen []design.Seen
		for range measured {
			at := s.Next(seen, rng)
			seen = append(seen, design.Seen{At: at, Log: effects[0][levels[at][0]] + effects[1][levels[at][1]]})
		}
		if design.Least(seen) == good {
			hits++
		}
	}
	if random := seeds * measured / len(levels); hits < 2*random {
		t.Errorf("the best of %d was found in %d of %d searches of %d; by chance %d", len(levels), hits, seeds, measured, random)
	}
}

func TestASpaceOfNoKnobsHasNothingToDraw(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	if at := (bandit.Search{Prior: bandit.DefaultPrior()}).Next(nil, rng); at != -1 {
		t.Errorf("next %d of no candidates", at)
	}
	if at := (bandit.Search{Levels: [][]int{{}}, Prior: bandit.DefaultPrior()}).Next(nil, rng); at != 0 {
		t.Errorf("next %d of one candidate", at)
	}
}
