// Package story tells a job's record as sentences that its owner understands.
//
// In comes a reconcile.Record; out go lines, each with the numbers behind it.
// A decision is told with what is left of the job, how its budgets stand, and every
// alternative that was considered; AddReplays tells what comes of deciding again.
// Nothing is decided, measured or rounded into something it was not: a number
// that is missing is said to be missing.
package story
