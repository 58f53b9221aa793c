package classify

import (
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/classify/kmeans"
)

// most is how many runs are looked at together while clusters are sought. Work grows
// with the square of what is looked at, and thousands of runs of few kinds say no more.
const most = 1000

// patience is how many further numbers of clusters are tried after the best.
const patience = 8

// partition sorts runs into clusters. Where there are more than most of them, clusters
// are sought among so many at random; the others join the nearest where noise explains
// the distance, and among those that are left the same is done again, so that a kind
// of few runs is not lost among thousands.
func (s Stratum) partition(runs []run, cfg Config, rng *rand.Rand) ([][]run, error) {
	if len(runs) <= most {
		return s.seek(runs, cfg, rng)
	}
	var clusters [][]run
	left := slices.Clone(runs)
	for len(left) > 0 && len(clusters) < cfg.MaxClasses {
		rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		n := min(most, len(left))
		found, err := s.seek(left[:n:n], cfg, rng)
		if err != nil || len(found) == 0 {
			return found, err
		}
		room := min(len(found), cfg.MaxClasses-len(clusters))
		clusters = append(clusters, found[:room]...)
		left = s.join(clusters, slices.Concat(left[n:], slices.Concat(found[room:]...)), s.Merge)
	}
	s.join(clusters, left, math.Inf(1))
	return s.merge(clusters), nil
}

// join adds runs to the clusters whose centres are nearest, and returns those that are
// farther than that from all, or share too little with them.
func (s Stratum) join(clusters [][]run, runs []run, within float64) []run {
	centers := make([]map[string]float64, len(clusters))
	for c := range clusters {
		centers[c] = center(s.Axes, clusters[c])
	}
	var out []run
	for _, r := range runs {
		best, at := math.Inf(1), -1
		for c := range centers {
			if d, share := s.distance(r.features, centers[c]); share >= enoughShare && d < best {
				best, at = d, c
			}
		}
		if at < 0 || best > within {
			out = append(out, r)
			continue
		}
		clusters[at] = append(clusters[at], r)
	}
	return out
}

// seek finds clusters by k-means. k is the number with the least inertia plus a fine
// for each cluster (as in DP-means, Kulis and Jordan, 2012), and the fine is what two
// single runs must save to be two clusters: half the square of the distance that noise
// alone explains. Then clusters whose means are nearer than that distance are merged,
// nearest first, since a fine that is right for single runs splits what many runs make
// broad. One cluster is a possible answer.
func (s Stratum) seek(runs []run, cfg Config, rng *rand.Rand) ([][]run, error) {
	points := s.points(runs)
	if len(points) == 0 || len(points[0]) == 0 {
		return [][]run{}, nil
	}
	distinct := slices.CompactFunc(slices.SortedFunc(slices.Values(points), slices.Compare), slices.Equal)
	fine := s.Merge * s.Merge / 2
	var labels []int
	best, bestK := math.Inf(1), 0
	for k := 1; k <= min(len(distinct), cfg.MaxClasses); k++ {
		if fine*float64(k) >= best || k > bestK+patience {
			break // no inertia is below 0
		}
		r, err := kmeans.Cluster(points, nil, k, kmeans.Config{}, rng)
		if err != nil {
			return nil, err
		}
		if cost := r.Inertia + fine*float64(k); cost < best {
			best, bestK, labels = cost, k, r.Labels
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
				out[i][j] = (a.place(v) - a.place(a.Median)) / a.Scale * math.Sqrt(a.Weight/weight)
			}
		}
	}
	return out
}

// merge joins the two nearest clusters, measured by what noise explains between them,
// until it explains none of the distances. Clusters come back in the order of their
// first runs.
func (s Stratum) merge(clusters [][]run) [][]run {
	centers := make([]map[string]float64, len(clusters))
	for c := range clusters {
		centers[c] = center(s.Axes, clusters[c])
	}
	for {
		nearest, a, b := 1.0, 0, 0
		for i := range clusters {
			for j := range i {
				d, share := s.distance(centers[i], centers[j])
				if d /= s.explained(len(clusters[i]), len(clusters[j])); share >= enoughShare && d < nearest {
					nearest, a, b = d, j, i
				}
			}
		}
		if nearest >= 1 {
			break
		}
		clusters[a] = append(clusters[a], clusters[b]...)
		centers[a] = center(s.Axes, clusters[a])
		clusters, centers = slices.Delete(clusters, b, b+1), slices.Delete(centers, b, b+1)
	}
	for _, members := range clusters {
		slices.SortFunc(members, compareRuns)
	}
	slices.SortFunc(clusters, func(x, y []run) int { return compareRuns(x[0], y[0]) })
	return clusters
}

// explained is how far a typical run of the smaller of two clusters, such as its centre
// is, may lie from the mean of the larger one and still be of the same class. It is
// what a class asks of a further run too: a cluster that is merged from farther away
// would hold runs which it does not recognise when they return.
func (s Stratum) explained(n, m int) float64 {
	return s.Merge * math.Sqrt((1+1/float64(max(n, m)))/2)
}

// silhouette is that of the runs in their clusters, of every so manieth where there are
// more than most: it takes the square of their number.
func (s Stratum) silhouette(clusters [][]run) float64 {
	total := 0
	for _, members := range clusters {
		total += len(members)
	}
	step := max(1, (total+most-1)/most)
	var chosen []run
	var labels []int
	for c, members := range clusters {
		for i := 0; i < len(members); i += step {
			chosen, labels = append(chosen, members[i]), append(labels, c)
		}
	}
	return kmeans.Silhouette(s.points(chosen), labels)
}
