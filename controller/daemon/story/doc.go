// Package story explains a job's record in sentences for its owner.
//
// In goes a reconcile.Record; out come lines, each with its numbers: of a decision the work
// that is left, the state of the budgets, and every alternative that was considered.
// AddReplays decides again and compares. The package never decides or measures, and a
// missing number is said to be missing.
package story
