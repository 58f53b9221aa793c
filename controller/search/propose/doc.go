// Package propose says which settings a hyperparameter search runs next, and how far.
//
// Input: candidates, and what the trials so far reached at each rung. Output: the candidate that
// begins or runs on to its next rung. Random, Grid and LatinHypercube are fixed orders. Gaussian is
// a Gaussian process with expected improvement, cold or with a History of other jobs. A Ladder
// stops what falls behind (ASHA); ladders that begin at different rungs are Hyperband.
//
// The same candidates, trials and seed give the same answer, so that who keeps the trials can ask
// again after a crash. The package does no I/O and never proposes what ran to its end.
package propose
