// Package propose says which settings a hyperparameter search runs next, and how far.
//
// A Method takes the trials so far, which candidates (settings that may be run) they are of
// and what each reached at the rungs that it came to, and names the candidate that begins or
// runs on to its next rung. The methods:
//
//   - Random, Grid and LatinHypercube are designs: their order is fixed beforehand.
//   - Gaussian is a Gaussian process with expected improvement, cold or with a History of
//     other jobs.
//   - A Ladder stops what falls behind: asynchronous successive halving (ASHA). A ladder of
//     one rung runs everything to its end; ladders that begin at different rungs, each over
//     a method of its own, are Hyperband.
//
// The history of trials is all that a method knows, so that who keeps the trials can ask
// again after a crash: the same candidates, trials and seed give the same answer. A method
// draws only from the generator that it was made with. It does no I/O and never proposes a
// candidate that ran to its end.
package propose
