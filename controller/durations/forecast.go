package durations

import (
	"math"
	"slices"
	"sort"
)

// Forecast is what a job will take, in seconds. The median has the least absolute error: it is the forecast to
// print, and to judge. The mean weighs rare long runs as what they cost, and a limit is an upper quantile.
type Forecast struct {
	Median, Mean float64 // NaN where nothing is known
	Samples      int     // the latest ended jobs of the same user that support it, up to 128
	known        bool
	grid         grid
}

// Known reports whether anything is known: before the first job has ended nothing is.
func (f Forecast) Known() bool { return f.known }

// Quantile is the duration that a share q of such jobs stays below, NaN where nothing is known. Below
// 0.005 and above 0.995 it is that of the nearest of the two.
func (f Forecast) Quantile(q float64) float64 {
	if !f.known || math.IsNaN(q) {
		return math.NaN()
	}
	return math.Exp(f.grid.at(q))
}

// levels of a distribution's quantiles: (k+0.5)/levels for each k.
const levels = 100

// grid is a quantile function at the levels.
type grid [levels]float64

func (g *grid) at(q float64) float64 { return between(g[:], q*levels-0.5) }

// between interpolates between the values of a list at a fractional index, and stops at its ends.
func between(v []float64, x float64) float64 {
	x = max(0, min(float64(len(v)-1), x))
	i := int(x)
	return v[i] + (x-float64(i))*(v[min(i+1, len(v)-1)]-v[i])
}

// level returns the quantile level of a value, 0 to 1: the middle where several have it.
func (g *grid) level(value float64) float64 {
	below := sort.SearchFloat64s(g[:], value)
	upTo := sort.Search(levels, func(k int) bool { return g[k] > value })
	return float64(below+upTo) / 2 / levels
}

// spread holds the latest values of a set of jobs, and their quantiles.
type spread struct {
	ring     []float64
	next     int
	untaken  int // values that came since the quantiles were taken
	quantile *grid
}

// add takes in a value, for one of the latest ones. New quantiles are taken when an eighth of the values is new.
func (s *spread) add(value float64, size int) {
	if len(s.ring) < size {
		s.ring = append(s.ring, value)
	} else {
		s.ring[s.next%size] = value
	}
	s.next++
	if s.untaken++; s.untaken*8 < len(s.ring) {
		return
	}
	s.untaken, s.quantile = 0, new(grid) // opinions keep the old ones
	sorted := slices.Sorted(slices.Values(s.ring))
	for k := range s.quantile {
		s.quantile[k] = between(sorted, (float64(k)+0.5)/levels*float64(len(sorted))-0.5)
	}
}

// mix is the quantile function of a mixture of two distributions, b with the weight w.
func mix(a, b *grid, w float64) grid {
	if w <= 0 {
		return *a
	}
	var out grid
	i, j, mass := 0, 0, 0.0
	for k := range out {
		for {
			next, step, taken := 0.0, 1-w, &i
			if i < levels && (j == levels || a[i] <= b[j]) {
				next = a[i]
			} else {
				next, step, taken = b[j], w, &j
			}
			if mass+step > float64(k)+0.5 || i+j == 2*levels-1 {
				out[k] = next
				break
			}
			mass += step
			*taken++
		}
	}
	return out
}
