package classify

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"pitchpipe/controller/classify/kmeans"
	"pitchpipe/controller/tuning"
)

const (
	patience   = 8   // further numbers of clusters that are tried after the best
	iterations = 100 // of k-means for one number of clusters
)

// partition sorts runs into clusters by k-means, and returns the silhouette of the
// partition. It begins with the classes of before, or with one of all runs, and adds a
// cluster as long as that pays. What pays is the fine for a cluster (as in DP-means,
// Kulis and Jordan, 2012): what two single runs must save in inertia to be two clusters,
// which is half the square of the distance that noise alone explains. Then clusters whose
// means are nearer than that distance are merged, nearest first, since a fine that is
// right for single runs splits what many runs make broad. One cluster is a possible answer.
func (s Stratum) partition(runs []run) (clusters [][]run, silhouette float64) {
	if len(s.Axes) == 0 {
		return nil, 0
	}
	sorted := slices.SortedFunc(slices.Values(runs), compareRuns) // so that rounding depends on no other order
	points := make([][]float64, len(runs))
	begin := map[int][][]float64{}
	for i, r := range sorted {
		points[i] = s.point(r.row)
		if r.before >= 0 {
			begin[r.before] = append(begin[r.before], points[i])
		}
	}
	if len(begin) == 0 {
		begin[0] = points
	}
	centroids := tuning.Each(slices.Sorted(maps.Keys(begin)), func(c int) []float64 { return middle(begin[c]) })
	distances := kmeans.Distances(points)
	fine := s.Merge * s.Merge / 2
	var labels []int
	for best, bestK := math.Inf(1), 0; ; {
		r := kmeans.Cluster(points, centroids, iterations)
		k := len(centroids)
		if cost := r.Inertia + fine*float64(k); cost < best {
			best, bestK, labels = cost, k, r.Labels
		}
		if k >= maxClasses || k >= bestK+patience || fine*float64(k+1) >= best { // no inertia is below 0
			break
		}
		next := kmeans.Next(distances, r)
		if next < 0 {
			break
		}
		centroids = append(r.Centroids, points[next])
	}
	clusters = make([][]run, slices.Max(labels)+1)
	for i, c := range labels {
		clusters[c] = append(clusters[c], sorted[i])
	}
	clusters = s.merge(clusters)
	of := map[string]int{}
	for c, members := range clusters {
		for _, r := range members {
			of[r.id] = c
		}
	}
	for i, r := range sorted {
		labels[i] = of[r.id]
	}
	return clusters, kmeans.Silhouette(distances, labels)
}

func middle(points [][]float64) []float64 {
	out := make([]float64, len(points[0]))
	for _, p := range points {
		floats.Add(out, p)
	}
	floats.Scale(1/float64(len(points)), out)
	return out
}

// merge joins the two nearest clusters, measured by what noise explains between them,
// until it explains none of the distances. Clusters come back in the order of their
// first runs.
func (s Stratum) merge(clusters [][]run) [][]run {
	centers := make([][]float64, len(clusters))
	for c := range clusters {
		centers[c] = center(clusters[c])
	}
	explained := map[[2]int]float64{}
	for {
		nearest, a, b := 1.0, 0, 0
		for i := range clusters {
			for j := range i {
				sizes := [2]int{len(clusters[i]), len(clusters[j])}
				if explained[sizes] == 0 {
					explained[sizes] = s.explained(sizes[0], sizes[1])
				}
				c := s.compare(centers[i], centers[j])
				if d := c.distance / explained[sizes]; c.share >= enoughShare && d < nearest {
					nearest, a, b = d, j, i
				}
			}
		}
		if nearest >= 1 {
			break
		}
		clusters[a] = append(clusters[a], clusters[b]...)
		centers[a] = center(clusters[a])
		clusters, centers = slices.Delete(clusters, b, b+1), slices.Delete(centers, b, b+1)
	}
	for _, members := range clusters {
		slices.SortFunc(members, compareRuns)
	}
	slices.SortFunc(clusters, func(x, y []run) int { return compareRuns(x[0], y[0]) })
	return clusters
}

// explained is how far a typical run of the smaller of two clusters, such as its centre
// is, may lie from the mean of the larger one and still be of the same class, as a class
// asks of a further run. A single run may be the farthest of as many as the larger one
// has (Bonferroni), or a class of many runs would shed those at its edge.
func (s Stratum) explained(n, m int) float64 {
	large := float64(max(n, m))
	merge := s.Merge
	if min(n, m) == 1 {
		merge = mergeDistance(s.freedom(), unexplained/large)
	}
	return merge * math.Sqrt((1+1/large)/2)
}
