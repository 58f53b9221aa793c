package replay

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

func TestABanditLearnsWhichValuesAreGood(t *testing.T) {
	t.Parallel()
	var settings []tuning.Settings
	for i := range 25 {
		settings = append(settings, tuning.Settings{"x": tuning.Number(float64(i / 5)), "y": tuning.Number(float64(i % 5))})
	}
	c := propose.Of(settings)
	x, y := []float64{1, 2, 0, 1, 2}, []float64{2, 1, 1, 0, 2}
	hits := 0
	const seeds, measured, good = 60, 10, 2*5 + 3
	for seed := range uint64(seeds) {
		b := bandit{c, rand.New(rand.NewPCG(seed, 1))}
		var trials []propose.Trial
		for range measured {
			at, err := b.Next(trials)
			if err != nil || at < 0 || slices.ContainsFunc(trials, func(t propose.Trial) bool { return t.At == at }) {
				t.Fatalf("next %d after %v: %v", at, trials, err)
			}
			trials = append(trials, propose.Trial{At: at, Losses: []float64{x[at/5] + y[at%5]}})
			if at == good {
				hits++
			}
		}
	}
	if random := seeds * measured / 25; 2*hits < 3*random {
		t.Errorf("the best of 25 was found in %d of %d searches of %d; by chance %d", hits, seeds, measured, random)
	}
}
