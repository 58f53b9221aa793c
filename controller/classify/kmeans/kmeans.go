package kmeans

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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
// each. Seeding is k-means++ (Arthur and Vassilvitskii, 2007); iterations are
// Lloyd's (1982); a cluster that runs empty takes over the point farthest from
// its centroid. Ties fall to the lower index, so that the answer depends on the
// input and on rng alone.
func Cluster(points [][]float64, weights []float64, k int, cfg Config, rng *rand.Rand) (Result, error) {
	if err := check(points, weights); err != nil {
		return Result{}, err
	}
	if n := distinct(points); k < 1 || k > n {
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
	var best Result
	for i := range cfg.Restarts {
		r := lloyd(points, weights, seed(points, weights, k, rng), cfg.Iterations)
		if i == 0 || r.Inertia < best.Inertia {
			best = r
		}
	}
	return best, nil
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

func distinct(points [][]float64) int {
	sorted := slices.SortedFunc(slices.Values(points), slices.Compare)
	return len(slices.CompactFunc(sorted, slices.Equal))
}

func squared(a, b []float64) float64 {
	d := floats.Distance(a, b, 2)
	return d * d
}

// seed draws k starting points, each with a probability in proportion to its
// weighted squared distance from those already drawn.
func seed(points [][]float64, weights []float64, k int, rng *rand.Rand) [][]float64 {
	centroids := [][]float64{slices.Clone(points[draw(weights, rng)])}
	far := make([]float64, len(points))
	for len(centroids) < k {
		for i, p := range points {
			_, d := nearest(p, centroids)
			far[i] = d * weights[i]
		}
		centroids = append(centroids, slices.Clone(points[draw(far, rng)]))
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

func nearest(p []float64, centroids [][]float64) (int, float64) {
	best, at := math.Inf(1), 0
	for c := range centroids {
		if d := squared(p, centroids[c]); d < best {
			best, at = d, c
		}
	}
	return at, best
}

func lloyd(points [][]float64, weights []float64, centroids [][]float64, iterations int) Result {
	r := Result{Centroids: centroids, Labels: make([]int, len(points))}
	for i := range r.Labels {
		r.Labels[i] = -1
	}
	for range iterations {
		if !assign(points, &r) {
			break
		}
		fillEmpty(points, weights, &r)
		recentre(points, weights, &r)
		r.Trace = append(r.Trace, r.Inertia)
	}
	return r
}

// assign moves each point to its nearest centroid and tells whether any moved.
func assign(points [][]float64, r *Result) bool {
	moved := false
	for i, p := range points {
		c, d := nearest(p, r.Centroids)
		// A point stays where it is as near, or equal points would circle.
		if old := r.Labels[i]; old >= 0 && d >= squared(p, r.Centroids[old]) {
			c = old
		}
		if c != r.Labels[i] {
			r.Labels[i], moved = c, true
		}
	}
	return moved
}

// fillEmpty gives each empty cluster the point that is farthest from its own
// centroid, out of a cluster that keeps another point.
func fillEmpty(points [][]float64, weights []float64, r *Result) {
	sizes := make([]int, len(r.Centroids))
	for _, c := range r.Labels {
		sizes[c]++
	}
	for c := range sizes {
		if sizes[c] > 0 {
			continue
		}
		farthest, at := -1.0, -1
		for i, p := range points {
			own := r.Labels[i]
			if sizes[own] < 2 {
				continue
			}
			if d := weights[i] * squared(p, r.Centroids[own]); d > farthest {
				farthest, at = d, i
			}
		}
		// k is at most the number of points, so some cluster has two.
		sizes[r.Labels[at]]--
		r.Labels[at], sizes[c] = c, 1
		copy(r.Centroids[c], points[at])
	}
}

// recentre moves each centroid to the mean of its points and sums the inertia.
func recentre(points [][]float64, weights []float64, r *Result) {
	sums := make([]float64, len(r.Centroids))
	for c := range r.Centroids {
		clear(r.Centroids[c])
	}
	for i, p := range points {
		floats.AddScaled(r.Centroids[r.Labels[i]], weights[i], p)
		sums[r.Labels[i]] += weights[i]
	}
	for c := range r.Centroids {
		floats.Scale(1/sums[c], r.Centroids[c])
	}
	r.Inertia = 0
	for i, p := range points {
		r.Inertia += weights[i] * squared(p, r.Centroids[r.Labels[i]])
	}
}
