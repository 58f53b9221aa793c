// Package bfs searches a random graph breadth first.
//
// In come an input number and a seed that make the graph; out comes, per epoch of
// several searches from different vertices, the mean distance (as loss) and the
// share of the vertices that were reached (as acc). Every level allocates its
// frontier anew, as such programs do. Each thread marks vertices of ranges of
// its own, so the result does not depend on the number of threads.
package bfs
