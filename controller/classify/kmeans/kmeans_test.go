package kmeans_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/controller/classify/kmeans"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// bruteForce tries every assignment of the points to k clusters, which shares
// no code with Cluster.
func bruteForce(points [][]float64, weights []float64, k int) float64 {
	best := math.Inf(1)
	labels := make([]int, len(points))
	var try func(i int)
	try = func(i int) {
		if i < len(points) {
			for c := range k {
				labels[i] = c
				try(i + 1)
			}
			return
		}
		total := 0.0
		for c := range k {
			for d := range points[0] {
				var w, wx, wxx float64
				for i, p := range points {
					if labels[i] == c {
						w += weights[i]
						wx += weights[i] * p[d]
						wxx += weights[i] * p[d] * p[d]
					}
				}
				if w > 0 {
					total += wxx - wx*wx/w
				}
			}
		}
		best = min(best, total)
	}
	try(0)
	return best
}

func drawPoints(t *rapid.T, low, high int) ([][]float64, []float64) {
	n := rapid.IntRange(low, high).Draw(t, "points")
	dim := rapid.IntRange(1, 3).Draw(t, "dimensions")
	points, weights := make([][]float64, n), make([]float64, n)
	for i := range points {
		for range dim {
			points[i] = append(points[i], float64(rapid.IntRange(-20, 20).Draw(t, "x")))
		}
		weights[i] = float64(rapid.IntRange(1, 4).Draw(t, "weight"))
	}
	return points, weights
}

func countDistinct(points [][]float64) int {
	n := 0
	for i, p := range points {
		if !slices.ContainsFunc(points[:i], func(q []float64) bool { return slices.Equal(p, q) }) {
			n++
		}
	}
	return n
}

// Lloyd's iterations end in a local optimum, which now and then is not the best
// one from any seeding.
func TestTinyInputsReachTheOptimumOfBruteForceButForFew(t *testing.T) {
	t.Parallel()
	const inputs = 300
	rng, missed := source(5), 0
	for range inputs {
		n, dim := 2+rng.IntN(5), 1+rng.IntN(3)
		points, weights := make([][]float64, n), make([]float64, n)
		for i := range points {
			for range dim {
				points[i] = append(points[i], float64(rng.IntN(41)-20))
			}
			weights[i] = float64(1 + rng.IntN(4))
		}
		k := 1 + rng.IntN(min(3, countDistinct(points)))
		r, err := kmeans.Cluster(points, weights, k, kmeans.Config{Restarts: 60}, rng)
		if err != nil {
			t.Fatal(err)
		}
		switch want := bruteForce(points, weights, k); {
		case r.Inertia < want-1e-6*(1+want):
			t.Fatalf("inertia %v of %v is below the best possible %v", r.Inertia, points, want)
		case r.Inertia > want+1e-6*(1+want):
			missed++
		}
	}
	if missed > inputs/50 {
		t.Errorf("the optimum was missed for %d of %d inputs", missed, inputs)
	}
}

func TestEveryPartitionIsConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points, weights := drawPoints(t, 1, 30)
		k := rapid.IntRange(1, countDistinct(points)).Draw(t, "k")
		before := make([][]float64, len(points))
		for i := range points {
			before[i] = slices.Clone(points[i])
		}
		seed := rapid.Uint64().Draw(t, "seed")
		r, err := kmeans.Cluster(points, weights, k, kmeans.Config{Restarts: 2}, source(seed))
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(r.Trace); i++ {
			if r.Trace[i] > r.Trace[i-1]*(1+1e-12)+1e-9 {
				t.Fatalf("inertia rose: %v", r.Trace)
			}
		}
		if len(r.Trace) == 0 || r.Trace[len(r.Trace)-1] != r.Inertia {
			t.Fatalf("the trace %v does not end at the inertia %v", r.Trace, r.Inertia)
		}
		sizes := make([]int, k)
		for i, c := range r.Labels {
			sizes[c]++
			own := square(points[i], r.Centroids[c])
			for other := range k {
				if d := square(points[i], r.Centroids[other]); d < own-1e-9 {
					t.Fatalf("point %d is nearer to %d (%v) than to its own %d (%v)", i, other, d, c, own)
				}
			}
		}
		if slices.Contains(sizes, 0) {
			t.Fatalf("an empty cluster: %v", sizes)
		}
		again, err := kmeans.Cluster(points, weights, k, kmeans.Config{Restarts: 2}, source(seed))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Fatalf("the same source gave another partition:\n%s", diff)
		}
		if diff := cmp.Diff(before, points); diff != "" {
			t.Fatalf("the input was changed:\n%s", diff)
		}
	})
}

func square(a, b []float64) float64 {
	total := 0.0
	for i := range a {
		total += (a[i] - b[i]) * (a[i] - b[i])
	}
	return total
}

func TestAWeightCountsAsThatManyPoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points, weights := drawPoints(t, 2, 6)
		var copies [][]float64
		for i, p := range points {
			for range int(weights[i]) {
				copies = append(copies, p)
			}
		}
		const k = 1 // one cluster has one answer, whatever the seeding
		a, err := kmeans.Cluster(points, weights, k, kmeans.Config{}, source(3))
		if err != nil {
			t.Fatal(err)
		}
		b, err := kmeans.Cluster(copies, nil, k, kmeans.Config{}, source(3))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.Centroids, b.Centroids, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("weighted and repeated points differ:\n%s", diff)
		}
		if math.Abs(a.Inertia-b.Inertia) > 1e-6*(1+a.Inertia) {
			t.Fatalf("weighted inertia %v, repeated points %v", a.Inertia, b.Inertia)
		}
	})
}

func TestInputsThatAreRefused(t *testing.T) {
	t.Parallel()
	one := [][]float64{{1}, {2}}
	for name, c := range map[string]struct {
		points  [][]float64
		weights []float64
		k       int
		want    error
	}{
		"no points":                          {nil, nil, 1, kmeans.ErrPoints},
		"no coordinates":                     {[][]float64{{}}, nil, 1, kmeans.ErrPoints},
		"points of unequal length":           {[][]float64{{1}, {1, 2}}, nil, 1, kmeans.ErrPoints},
		"a NaN":                              {[][]float64{{math.NaN()}}, nil, 1, kmeans.ErrPoints},
		"an infinity":                        {[][]float64{{math.Inf(-1)}}, nil, 1, kmeans.ErrPoints},
		"a square beyond all floats":         {[][]float64{{1e200}}, nil, 1, kmeans.ErrPoints},
		"too few weights":                    {one, []float64{1}, 1, kmeans.ErrWeights},
		"a weight of zero":                   {one, []float64{1, 0}, 1, kmeans.ErrWeights},
		"a weight that is NaN":               {one, []float64{1, math.NaN()}, 1, kmeans.ErrWeights},
		"an infinite weight":                 {one, []float64{1, math.Inf(1)}, 1, kmeans.ErrWeights},
		"no cluster":                         {one, nil, 0, kmeans.ErrK},
		"more clusters than points":          {one, nil, 3, kmeans.ErrK},
		"more clusters than distinct points": {[][]float64{{1}, {1}, {1}}, nil, 2, kmeans.ErrK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := kmeans.Cluster(c.points, c.weights, c.k, kmeans.Config{}, source(1)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestSilhouetteOfKnownPartitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		points [][]float64
		labels []int
		want   float64
	}{
		"one cluster has none":         {[][]float64{{1}, {2}}, []int{0, 0}, 0},
		"points alone count nothing":   {[][]float64{{1}, {2}}, []int{0, 1}, 0},
		"equal points count nothing":   {[][]float64{{1}, {1}, {1}, {1}}, []int{0, 0, 1, 1}, 0},
		"two pairs far apart":          {[][]float64{{0}, {1}, {10}, {11}}, []int{0, 0, 1, 1}, (2*(10.5-1)/10.5 + 2*(9.5-1)/9.5) / 4},
		"pairs across the gap":         {[][]float64{{0}, {10}, {1}, {11}}, []int{0, 0, 1, 1}, (2*(6.0-10)/10 + 2*(5.0-10)/10) / 4},
		"the nearest other counts":     {[][]float64{{0}, {1}, {4}, {100}}, []int{0, 0, 1, 2}, ((4.0-1)/4 + (3.0-1)/3) / 4},
		"labels may leave out numbers": {[][]float64{{0}, {1}, {10}, {11}}, []int{1, 1, 5, 5}, (2*(10.5-1)/10.5 + 2*(9.5-1)/9.5) / 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := kmeans.Silhouette(c.points, c.labels); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSeparateGroupsAreFound(t *testing.T) {
	t.Parallel()
	rng := source(11)
	var points [][]float64
	for i := range 60 {
		at := float64(i%3) * 10
		points = append(points, []float64{at + rng.NormFloat64(), -at + rng.NormFloat64()})
	}
	r, err := kmeans.Cluster(points, nil, 3, kmeans.Config{}, rng)
	if err != nil {
		t.Fatal(err)
	}
	for i := range points {
		if r.Labels[i] != r.Labels[i%3] {
			t.Fatalf("point %d is not with its group: %v", i, r.Labels)
		}
	}
	if s := kmeans.Silhouette(points, r.Labels); s < 0.7 {
		t.Errorf("silhouette %v of three groups that stand apart", s)
	}
}
