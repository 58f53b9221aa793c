package classify

import (
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/classify/kmeans"
)

// partition sorts runs into clusters by k-means. k is the number with the least
// inertia plus a fine for each cluster (as in DP-means, Kulis and Jordan, 2012),
// and the fine is what two single runs must save to be two clusters: half the
// square of the distance that noise alone explains. Then clusters whose means
// are nearer than that distance are merged, nearest first, since a fine that is
// right for single runs splits what many runs make broad. One cluster is a
// possible answer.
func (s Stratum) partition(runs []run, cfg Config, rng *rand.Rand) ([][]run, error) {
	points := s.points(runs)
	if len(points) == 0 || len(points[0]) == 0 {
		return [][]run{}, nil
	}
	distinct := slices.CompactFunc(slices.SortedFunc(slices.Values(points), slices.Compare), slices.Equal)
	fine := s.Merge * s.Merge / 2
	var labels []int
	best := math.Inf(1)
	for k := 1; k <= min(len(distinct), cfg.MaxClasses); k++ {
		r, err := kmeans.Cluster(points, nil, k, kmeans.Config{}, rng)
		if err != nil {
			return nil, err
		}
		if cost := r.Inertia + fine*float64(k); cost < best {
			best, labels = cost, r.Labels
		}
	}
	clusters := make([][]run, slices.Max(labels)+1)
	for i, c := range labels {
		clusters[c] = append(clusters[c], runs[i])
	}
	return s.merge(clusters), nil
}

// points puts runs where squared Euclidean distance is the stratum's squared
// distance. A missing feature stands at the median, so that it pulls nowhere.
func (s Stratum) points(runs []run) [][]float64 {
	weight := 0.0
	for _, a := range s.Axes {
		weight += a.Weight
	}
	out := make([][]float64, len(runs))
	for i, r := range runs {
		out[i] = make([]float64, len(s.Axes))
		for j, a := range s.Axes {
			if v, ok := r.features[a.Feature]; ok {
				out[i][j] = (v - a.Median) / a.Scale * math.Sqrt(a.Weight/weight)
			}
		}
	}
	return out
}

// merge joins the two nearest clusters until all are further apart than noise
// explains. Clusters come back in the order of their first runs.
func (s Stratum) merge(clusters [][]run) [][]run {
	for {
		nearest, a, b := math.Inf(1), 0, 0
		for i := range clusters {
			for j := range i {
				d, share := s.distance(center(s.Axes, clusters[i]), center(s.Axes, clusters[j]))
				if share >= enoughShare && d < nearest {
					nearest, a, b = d, j, i
				}
			}
		}
		if nearest >= s.Merge {
			break
		}
		clusters[a] = append(clusters[a], clusters[b]...)
		clusters = slices.Delete(clusters, b, b+1)
	}
	for _, members := range clusters {
		slices.SortFunc(members, compareRuns)
	}
	slices.SortFunc(clusters, func(x, y []run) int { return compareRuns(x[0], y[0]) })
	return clusters
}

func (s Stratum) silhouette(clusters [][]run) float64 {
	var labels []int
	for c, members := range clusters {
		labels = append(labels, slices.Repeat([]int{c}, len(members))...)
	}
	return kmeans.Silhouette(s.points(slices.Concat(clusters...)), labels)
}
