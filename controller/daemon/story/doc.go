// Package story tells a job's record as sentences that its owner understands.
//
// In comes a reconcile.Record; out go lines, each with the numbers behind it.
// Nothing is decided, measured or rounded into something it was not: a number
// that is missing is said to be missing.
package story
