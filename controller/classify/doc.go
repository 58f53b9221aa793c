// Package classify says which known class a profile resembles, if any.
//
// It learns a Model from samples (profiles with the run and kind they are of), at once or
// run by run: a further run costs the same however many were learned before. A Model
// encodes to JSON and back, and returns for a profile a tuning.Class with distance,
// radius and reason. Profiles are compared only within one Stratum: same schema, same
// kind of machine, same cores and threads. Distances are measured in units of noise: how much a feature of an averaged
// profile differs between two runs of the same kind (PRIORS.md), learned from
// the samples where there are enough. Rates of events that cost next to nothing count as alike.
//
// A profile with too few samples is neither learned nor classified. A contended one is classified
// but not learned. Any other flag of a profile is returned with its class as a caution. If two
// classes cannot be told apart, neither is the answer.
//
// The package is pure. It never takes a missing feature for zero, never forces a profile
// into the nearest class, and never decides what to do with a class.
package classify
