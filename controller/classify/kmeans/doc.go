// Package kmeans partitions points by Lloyd's algorithm with k-means++ seeding.
//
// In come points of equal length with finite coordinates, optional positive
// weights, k, and a source of randomness; out go centroids, labels and the
// inertia, equal for equal input and an equal source. The package never scales,
// never chooses k, never reads global randomness, and never takes a NaN: what is
// missing must be settled before.
package kmeans
