package kmeans

import "gonum.org/v1/gonum/floats"

// Silhouette returns the mean silhouette width of a partition (Rousseeuw, 1987),
// from -1 to 1: near 1 the clusters stand apart, near 0 they touch. A point alone
// in its cluster counts 0, and so does a partition into fewer than two clusters.
// labels has one label, at least 0, for each point.
func Silhouette(points [][]float64, labels []int) float64 {
	sizes := map[int]int{}
	top := 0
	for _, c := range labels {
		sizes[c]++
		top = max(top, c)
	}
	if len(sizes) < 2 {
		return 0
	}
	total := 0.0
	for i, p := range points {
		own := labels[i]
		if sizes[own] < 2 {
			continue
		}
		sums := make([]float64, top+1)
		for j, q := range points {
			sums[labels[j]] += floats.Distance(p, q, 2)
		}
		inside := sums[own] / float64(sizes[own]-1)
		outside, found := 0.0, false
		for c, n := range sizes {
			if c == own {
				continue
			}
			if mean := sums[c] / float64(n); !found || mean < outside {
				outside, found = mean, true
			}
		}
		if widest := max(inside, outside); widest > 0 {
			total += (outside - inside) / widest
		}
	}
	return total / float64(len(points))
}
