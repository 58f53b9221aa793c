package propose

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"
	"gonum.org/v1/gonum/stat/samplemv"
)

const draws = 20

// latinHypercube returns n points of the unit cube, one in each of the n strata of every axis: the
// most spread of some draws.
func latinHypercube(n, axes int, rng *rand.Rand) [][]float64 {
	if n == 0 || axes == 0 {
		return make([][]float64, n)
	}
	best, gap := mat.NewDense(n, axes, nil), -1.0
	cube := samplemv.LatinHypercube{Q: distmv.NewUnitUniform(axes, rng), Src: rng}
	for range draws {
		design := mat.NewDense(n, axes, nil)
		cube.Sample(design)
		design.Apply(func(_, _ int, x float64) float64 { return (math.Floor(x*float64(n)) + 0.5) / float64(n) }, design)
		closest := math.Inf(1)
		for i := range n {
			for j := range i {
				closest = min(closest, floats.Distance(design.RawRowView(i), design.RawRowView(j), 2))
			}
		}
		if closest > gap {
			best, gap = design, closest
		}
	}
	out := make([][]float64, n)
	for i := range out {
		out[i] = best.RawRowView(i)
	}
	return out
}

// grid returns at most n points of a full factorial, ends included, in random order. The axes are
// refined in turn; one that gets a single level stays in its middle.
func grid(n, axes int, rng *rand.Rand) [][]float64 {
	levels, total := slices.Repeat([]int{1}, axes), 1
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

// snap picks for each point the nearest candidate that is not taken yet.
func (c *Candidates) snap(points [][]float64) []int {
	var out []int
	taken := make([]bool, len(c.Points))
	for _, p := range points {
		p = slices.Clone(p)
		for i, a := range c.Axes {
			if m := float64(len(a.Words)); m > 0 {
				p[i] = min(math.Floor(p[i]*m), m-1) // the index of a word
			}
		}
		best, least := -1, math.Inf(1)
		for i, q := range c.Points {
			if d := c.Distance(p, q); !taken[i] && d < least {
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
