// Package propose says which settings a hyperparameter search runs next.
//
// Input: candidates, and what the trials so far reached at each rung. Output: the candidate that
// begins. Listed (Random, Grid, LatinHypercube) are fixed orders. Gaussian is a Gaussian process with
// expected improvement over losses, cold or with a History of other jobs. Guide is one over Scores:
// the order of the trials at all rungs, whatever the unit of their losses. It stretches, shrinks or
// turns around what Recall brings from other jobs, as the trials demand.
//
// The same candidates, trials and seed give the same answer, so that the keeper of the trials can
// ask again after a crash. The package does no I/O and never proposes what began before.
package propose
