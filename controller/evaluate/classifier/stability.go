package classifier

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// stability learns from random four fifths of the executions and compares the classes
// of those with the classes of all.
func (b *bench) stability(ctx context.Context, resamples int, s *Summary) error {
	whole, err := b.fit(func(execution) bool { return true }, true)
	if err != nil {
		return err
	}
	s.K, s.Strata, s.Resamples = whole.k, whole.strata, resamples
	var indices []float64
	for i := range resamples {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.step(fmt.Sprintf("resample %d", i+1))
		rng := rand.New(rand.NewPCG(b.seed, uint64(1000+i)))
		chosen := map[string]bool{}
		for _, at := range rng.Perm(len(b.all))[:len(b.all)*4/5] {
			chosen[b.all[at].run] = true
		}
		part, err := b.fit(func(e execution) bool { return chosen[e.run] }, true)
		if err != nil {
			return err
		}
		indices = append(indices, adjustedRand(whole.label, part.label))
	}
	s.Stability = mean(indices)
	return nil
}

// adjustedRand compares two partitions of the things that both know (Hubert and
// Arabie, 1985): 1 where they are the same, 0 where they agree as chance would.
func adjustedRand(a, b map[string]string) float64 {
	both, inA, inB, n := map[[2]string]int{}, map[string]int{}, map[string]int{}, 0
	for thing, x := range a {
		y, ok := b[thing]
		if !ok {
			continue
		}
		both[[2]string{x, y}]++
		inA[x]++
		inB[y]++
		n++
	}
	index, left, right, all := pairs(both), pairs(inA), pairs(inB), float64(n)*float64(n-1)/2
	if all == 0 {
		return 1
	}
	expected := left * right / all
	if top := (left + right) / 2; top != expected {
		return (index - expected) / (top - expected)
	}
	return 1
}

func pairs[K comparable](counts map[K]int) float64 {
	sum := 0.0
	for _, n := range counts {
		sum += float64(n) * float64(n-1) / 2
	}
	return sum
}
