// Package kmeans clusters points by Lloyd's algorithm, one pass an epoch.
//
// In come an input number and a seed that make the points; out come, per epoch,
// the inertia per point (as loss) and the share of the points' variance that the
// clusters explain (as acc). The sums of a fixed number of pieces are added in
// order, so the result does not depend on the number of threads.
package kmeans
