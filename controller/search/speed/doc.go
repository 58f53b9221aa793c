// Package speed forecasts how fast a job steps under settings that were not measured.
//
// It takes the settings that may be used and what was measured under some of them (seconds
// a step, or that the job could not run), and returns the seconds of a step under each, and
// the setting to measure next.
//
// The seconds are a sum of parts that are never negative, in the manner of Optimus: a
// constant, work that cores share, work that grows with the batch, and communication
// that grows with workers and nodes, fitted to relative errors. What the parts leave over
// is the Gaussian process of package propose. Settings with at most the memory that a run
// failed with are predicted to fail too.
//
// The package is pure. It never says that a setting is good: what is fast may be dear.
package speed
