package kmeans

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
)

// What Cluster refuses.
var (
	// ErrPoints: no points, points of unequal length, or a coordinate that is NaN,
	// infinite, or beyond 1e100.
	ErrPoints = errors.New("points cannot be clustered")
	// ErrWeights: not one positive, finite weight for each point.
	ErrWeights = errors.New("weights do not fit the points")
	// ErrK: k below 1 or above the number of distinct points.
	ErrK = errors.New("no such number of clusters")
)

// maxCoordinate keeps sums of squares finite.
const maxCoordinate = 1e100

// Config bounds the work. Its zero value is useful.
type Config struct {
	Restarts   int // independent seedings, of which the best is kept; 0 = 10
	Iterations int // at most so many per seeding; 0 = 100
}

// Result is a partition.
type Result struct {
	Centroids [][]float64 // k weighted means
	Labels    []int       // of each point, an index into Centroids; no cluster is empty
	Inertia   float64     // weighted sum of squared distances to the own centroid
	Trace     []float64   // inertia after each iteration of the seeding that was kept; never rises
}

// Cluster partitions points into k clusters. weights may be nil, which means one
// each. Seeding is greedy k-means++ (Arthur and Vassilvitskii, 2007); iterations are
// Lloyd's (1982), with the bounds of Hamerly (2010), which change no answer; a cluster that runs empty takes over the point farthest from
// its centroid. Ties fall to the lower index, so that the answer depends on the
// input and on rng alone.
func Cluster(points [][]float64, weights []float64, k int, cfg Config, rng *rand.Rand) (Result, error) {
	if err := check(points, weights); err != nil {
		return Result{}, err
	}
	if n := distinct(points, max(k, 1)); k < 1 || k > n {
		return Result{}, fmt.Errorf("%w: %d of %d distinct points", ErrK, k, n)
	}
	if weights == nil {
		weights = make([]float64, len(points))
		floats.AddConst(1, weights)
	}
	if cfg.Restarts < 1 {
		cfg.Restarts = 10
	}
	if cfg.Iterations < 1 {
		cfg.Iterations = 100
	}
	points = packed(points)
	// Each seeding draws from a source of its own, so that they can run side by side
	// and give what they would one after the other.
	results := make([]Result, cfg.Restarts)
	var all sync.WaitGroup
	for i := range results {
		own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		all.Go(func() { results[i] = lloyd(points, weights, seed(points, weights, k, own), cfg.Iterations) })
	}
	all.Wait()
	best := results[0]
	for _, r := range results[1:] {
		if r.Inertia < best.Inertia {
			best = r
		}
	}
	return best, nil
}

// packed lays the points one behind the other in memory.
func packed(points [][]float64) [][]float64 {
	flat := slices.Concat(points...)
	out, dim := make([][]float64, len(points)), len(points[0])
	for i := range out {
		out[i] = flat[i*dim : (i+1)*dim : (i+1)*dim]
	}
	return out
}

func check(points [][]float64, weights []float64) error {
	if len(points) == 0 || len(points[0]) == 0 {
		return fmt.Errorf("%w: there are none", ErrPoints)
	}
	for i, p := range points {
		if len(p) != len(points[0]) {
			return fmt.Errorf("%w: point %d has %d coordinates, not %d", ErrPoints, i, len(p), len(points[0]))
		}
		for j, x := range p {
			if !(math.Abs(x) <= maxCoordinate) {
				return fmt.Errorf("%w: coordinate %d of point %d is %v", ErrPoints, j, i, x)
			}
		}
	}
	if weights == nil {
		return nil
	}
	if len(weights) != len(points) {
		return fmt.Errorf("%w: %d for %d points", ErrWeights, len(weights), len(points))
	}
	for i, w := range weights {
		if !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("%w: weight %d is %v", ErrWeights, i, w)
		}
	}
	return nil
}

// distinct counts the distinct points, up to enough of them.
func distinct(points [][]float64, enough int) int {
	var found [][]float64
	for _, p := range points {
		if !slices.ContainsFunc(found, func(q []float64) bool { return slices.Equal(p, q) }) {
			if found = append(found, p); len(found) == enough {
				break
			}
		}
	}
	return len(found)
}

// seed draws k starting points. Each is the best of a few candidates, which are drawn
// with a probability in proportion to their weighted squared distance from those
// already there: the one that leaves the least such distance to all.
func seed(points [][]float64, weights []float64, k int, rng *rand.Rand) [][]float64 {
	first := points[draw(weights, rng)]
	centroids := [][]float64{slices.Clone(first)}
	near, mass := make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		near[i] = squared(p, first)
		mass[i] = near[i] * weights[i]
	}
	candidates := make([]int, 2+int(math.Log(float64(k))))
	left, trials := make([]float64, len(candidates)), make([][]float64, len(candidates))
	for c := range trials {
		trials[c] = make([]float64, len(points))
	}
	for len(centroids) < k {
		for c := range candidates {
			candidates[c], left[c] = draw(mass, rng), 0
		}
		// One pass for all of them: the points may not fit into the caches.
		for i, p := range points {
			for c, drawn := range candidates {
				v := min(near[i], squaredBelow(p, points[drawn], near[i]))
				trials[c][i] = v
				left[c] += v * weights[i]
			}
		}
		best := slices.Index(left, slices.Min(left))
		near, trials[best] = trials[best], near
		for i := range mass {
			mass[i] = near[i] * weights[i]
		}
		centroids = append(centroids, slices.Clone(points[candidates[best]]))
	}
	return centroids
}

// draw picks an index with a probability in proportion to its mass.
func draw(mass []float64, rng *rand.Rand) int { return pick(mass, rng.Float64()) }

// pick returns the index whose share of the mass holds u, from 0 to 1.
func pick(mass []float64, u float64) int {
	u *= floats.Sum(mass)
	last := 0
	for i, m := range mass {
		if m <= 0 {
			continue
		}
		if u < m {
			return i
		}
		u -= m
		last = i // where rounding leaves u behind the last mass
	}
	return last
}
