package design

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Random returns the numbers from 0 to n-1 in random order: the order in which a
// random search tries n candidates.
func Random(n int, rng *rand.Rand) []int { return rng.Perm(n) }

// LatinHypercube returns n points of the unit cube, one in the middle of each of the n
// strata of every axis: of draws random designs the one whose closest points are
// farthest apart.
func LatinHypercube(n, axes, draws int, rng *rand.Rand) [][]float64 {
	var best [][]float64
	gap := -1.0
	for range max(draws, 1) {
		design := make([][]float64, n)
		for i := range design {
			design[i] = make([]float64, axes)
		}
		for a := range axes {
			for i, stratum := range rng.Perm(n) {
				design[i][a] = (float64(stratum) + 0.5) / float64(n)
			}
		}
		if g := closest(design); g > gap {
			best, gap = design, g
		}
	}
	return best
}

// closest is the least squared distance between two points, infinite for fewer than two.
func closest(points [][]float64) float64 {
	least := math.Inf(1)
	for i, p := range points {
		for _, q := range points[:i] {
			sum := 0.0
			for a := range p {
				sum += (p[a] - q[a]) * (p[a] - q[a])
			}
			least = min(least, sum)
		}
	}
	return least
}

// Grid returns at most n points of a full factorial in the unit cube, ends included.
// The axes are refined in turn, in random order; one that gets a single level stays in
// its middle. The points come in random order.
func Grid(n, axes int, rng *rand.Rand) [][]float64 {
	levels := make([]int, axes)
	for a := range levels {
		levels[a] = 1
	}
	total := 1
	order := rng.Perm(axes)
	for grown := true; grown; {
		grown = false
		for _, a := range order {
			if next := total / levels[a] * (levels[a] + 1); next <= n {
				levels[a]++
				total, grown = next, true
			}
		}
	}
	points := make([][]float64, total)
	for i := range points {
		points[i] = make([]float64, axes)
		rest := i
		for a, l := range levels {
			points[i][a] = 0.5
			if l > 1 {
				points[i][a] = float64(rest%l) / float64(l-1)
			}
			rest /= l
		}
	}
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points
}

// Snap picks for each point of the unit cube the nearest candidate that is not taken
// yet, and returns their indices. candidates are points of the space; ties go to the
// first. Where the candidates run out, the rest of the points is dropped.
func (s Space) Snap(points, candidates [][]float64) []int {
	var out []int
	taken := make([]bool, len(candidates))
	for _, p := range points {
		p = s.stretch(p)
		best, least := -1, math.Inf(1)
		for i, c := range candidates {
			if d := s.distance(p, c); !taken[i] && d < least {
				best, least = i, d
			}
		}
		if best < 0 {
			break
		}
		taken[best] = true
		out = append(out, best)
	}
	return out
}

// stretch turns the unit cube's coordinates of word axes into indices of words.
func (s Space) stretch(p []float64) []float64 {
	p = slices.Clone(p)
	for i, a := range s.Axes {
		if m := len(a.Words); m > 0 {
			p[i] = min(math.Floor(p[i]*float64(m)), float64(m-1))
		}
	}
	return p
}
