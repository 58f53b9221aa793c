package kmeans_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/classify/kmeans"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// bruteForce tries every assignment of the points to k clusters, which shares
// no code with Cluster.
func bruteForce(points [][]float64, k int) float64 {
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
				var n, x, xx float64
				for i, p := range points {
					if labels[i] == c {
						n++
						x += p[d]
						xx += p[d] * p[d]
					}
				}
				if n > 0 {
					total += xx - x*x/n
				}
			}
		}
		best = min(best, total)
	}
	try(0)
	return best
}

func drawPoints(t *rapid.T, low, high int) [][]float64 {
	dim := rapid.SampledFrom([]int{1, 2, 3, 18}).Draw(t, "dimensions") // 16 are added up at once
	points := make([][]float64, rapid.IntRange(low, high).Draw(t, "points"))
	for i := range points {
		for range dim {
			points[i] = append(points[i], float64(rapid.IntRange(-20, 20).Draw(t, "x")))
		}
	}
	return points
}

// grow adds clusters until there are k of them.
func grow(t interface{ Fatal(...any) }, points [][]float64, k int) kmeans.Result {
	distances := kmeans.Distances(points)
	for start := points[:1]; ; {
		r := kmeans.Cluster(points, start, 100)
		if len(start) == k {
			return r
		}
		next := kmeans.Next(distances, r)
		if next < 0 {
			t.Fatal("no further cluster is any good")
		}
		start = append(r.Centroids, points[next])
	}
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

// Lloyd's iterations end in a local optimum, which now and then is not the best one.
func TestTinyInputsThatGrowComeCloseToTheOptimumOfBruteForce(t *testing.T) {
	t.Parallel()
	const inputs = 300
	rng, missed, got, best := source(5), 0, 0.0, 0.0
	for range inputs {
		n, dim := 2+rng.IntN(5), 1+rng.IntN(3)
		points := make([][]float64, n)
		for i := range points {
			for range dim {
				points[i] = append(points[i], float64(rng.IntN(41)-20))
			}
		}
		k := 1 + rng.IntN(min(3, countDistinct(points)))
		inertia, want := grow(t, points, k).Inertia, bruteForce(points, k)
		switch {
		case inertia < want-1e-6*(1+want):
			t.Fatalf("inertia %v of %v is below the best possible %v", inertia, points, want)
		case inertia > want+1e-6*(1+want):
			missed++
		}
		got, best = got+inertia, best+want
	}
	t.Logf("the optimum was missed for %d of %d inputs, the inertia is %.3f of the best", missed, inputs, got/best)
	if missed > inputs/8 || got > 1.05*best {
		t.Errorf("the optimum was missed for %d of %d inputs, the inertia is %.3f of the best", missed, inputs, got/best)
	}
}

func TestEveryPartitionIsConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t, 1, 30)
		k := rapid.IntRange(1, countDistinct(points)).Draw(t, "k")
		start := rapid.Permutation(points).Draw(t, "start")[:k] // equal ones among them
		before := packs(points, start)
		r := kmeans.Cluster(points, start, 100)
		for i, last := 1, math.Inf(1); i <= 10; i++ {
			inertia := kmeans.Cluster(points, start, i).Inertia
			if inertia > last*(1+1e-12)+1e-9 {
				t.Fatalf("iteration %d: the inertia rose from %v to %v", i, last, inertia)
			}
			last = inertia
		}
		sizes := make([]int, k)
		for i, c := range r.Labels {
			sizes[c]++
			own := square(points[i], r.Centroids[c])
			if math.Abs(own-r.Near[i]) > 1e-9 {
				t.Fatalf("point %d is %v from its centroid, not %v", i, own, r.Near[i])
			}
			for other := range k {
				if d := square(points[i], r.Centroids[other]); d < own-1e-9 {
					t.Fatalf("point %d is nearer to %d (%v) than to its own %d (%v)", i, other, d, c, own)
				}
			}
		}
		if slices.Contains(sizes, 0) {
			t.Fatalf("an empty cluster: %v", sizes)
		}
		if diff := cmp.Diff(r, kmeans.Cluster(points, start, 100)); diff != "" {
			t.Fatalf("the same points gave another partition:\n%s", diff)
		}
		if diff := cmp.Diff(before, packs(points, start)); diff != "" {
			t.Fatalf("the input was changed:\n%s", diff)
		}
	})
}

// packs copies lists of points.
func packs(lists ...[][]float64) [][]float64 {
	var out [][]float64
	for _, p := range slices.Concat(lists...) {
		out = append(out, slices.Clone(p))
	}
	return out
}

func TestTheNextCentroidSavesMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t, 1, 20)
		r := grow(t, points, rapid.IntRange(1, countDistinct(points)).Draw(t, "k"))
		saved := func(at []float64) float64 {
			total := 0.0
			for i, p := range points {
				total += max(0, r.Near[i]-square(p, at))
			}
			return total
		}
		most := 0.0
		for _, p := range points {
			most = max(most, saved(p))
		}
		switch next := kmeans.Next(kmeans.Distances(points), r); {
		case next < 0 && most > 0:
			t.Fatalf("none is named, one saves %v", most)
		case next >= 0 && saved(points[next]) < most-1e-9:
			t.Fatalf("point %d saves %v, another %v", next, saved(points[next]), most)
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
			if got := kmeans.Silhouette(kmeans.Distances(c.points), c.labels); math.Abs(got-c.want) > 1e-12 {
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
	r := grow(t, points, 3)
	for i := range points {
		if r.Labels[i] != r.Labels[i%3] {
			t.Fatalf("point %d is not with its group: %v", i, r.Labels)
		}
	}
	if s := kmeans.Silhouette(kmeans.Distances(points), r.Labels); s < 0.7 {
		t.Errorf("silhouette %v of three groups that stand apart", s)
	}
}
