//go:build race

package verify

// raced: the race detector makes each sequence ten times as dear, and finds nothing in
// sums. Without it, as for the coverage, there are all of them.
const raced = true
