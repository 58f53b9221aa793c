package kmeans

import "math"

// Silhouette returns the mean silhouette width of a partition (Rousseeuw, 1987),
// from -1 to 1: near 1 the clusters stand apart, near 0 they touch. A point alone
// in its cluster counts 0, and so does a partition into fewer than two clusters.
// distances are the squared ones of Distances; labels has one label, at least 0, for
// each point.
func Silhouette(distances [][]float64, labels []int) float64 {
	sizes := map[int]int{}
	top := 0
	for _, c := range labels {
		sizes[c]++
		top = max(top, c)
	}
	if len(sizes) < 2 {
		return 0
	}
	total, sums := 0.0, make([]float64, top+1)
	for i, own := range labels {
		if sizes[own] < 2 {
			continue
		}
		clear(sums)
		for j, d := range distances[i] {
			sums[labels[j]] += math.Sqrt(d)
		}
		inside := sums[own] / float64(sizes[own]-1)
		outside := math.Inf(1)
		for c, n := range sizes {
			if c != own {
				outside = min(outside, sums[c]/float64(n))
			}
		}
		if widest := max(inside, outside); widest > 0 {
			total += (outside - inside) / widest
		}
	}
	return total / float64(len(labels))
}
