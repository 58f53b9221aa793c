// Package preview says what a hyperparameter search will use before anything runs.
//
// Input: the plan of a search, and what an epoch takes where that is known. Output: how many trials
// train for how long, the epochs of all of them, and the time, joules and core-hours that they use, with
// the range that nine of ten searches fall into.
//
// The numbers come from the searcher itself: it decides about trials with random values on a simulated
// cluster, see Play. The package is pure, and it never predicts how good a trial gets: a search with a
// target may end earlier.
package preview
