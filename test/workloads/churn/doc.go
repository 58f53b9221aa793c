// Package churn grows and drops search trees, so that the run-time collects garbage all
// the while.
//
// In come an input number and a seed; out comes, per epoch of many trees of random keys,
// how deep they are compared with balanced ones (as loss, the mean ratio less one) and
// the share whose keys come back in order and in number (as acc). Every key is an
// allocation of its own with pointers in it, which is what a collector has to follow.
package churn
