// Package search says which settings of a job to try next, and which of those
// tried is best.
//
// In come a policy, the owner's own settings, and the trials that were measured
// so far. Out come the space of settings that may be tried, the next of them or
// the reason why there is none, and the best trial with its gain and the noise
// of that gain. The order is coordinate ascent: one knob at a time from the best
// settings found so far, system knobs before hyperparameters, cores first.
//
// The same trials always give the same answer. A setting that was tried is never
// tried again, and nothing outside the space is ever proposed. Memory is not
// searched (it follows from the observed peak), nor are GPUs and the power
// limit. Hyperparameters are searched only where a quality guard watches them.
//
// Package recur below it goes on where a job returns: it learns over runs, from those
// that ended too. The search here is within one job.
//
// The package is pure. It never reads a clock, never draws at random, never does
// I/O, and holds no state.
package search
