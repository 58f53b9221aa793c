// Package kmeans partitions points by Lloyd's algorithm.
//
// It takes points of equal length with finite coordinates and the centroids to start
// from, and returns centroids, labels and the inertia. Next names the point that is the
// best further centroid, so that a caller can grow a partition until it is good enough.
// Equal input gives equal output, without randomness. The package never scales,
// never chooses k, and never takes a NaN: the caller settles what is missing.
package kmeans
