// Package story explains a job's record to its owner.
//
// Input: a reconcile.Record. Output: three lines (verdict, effect, next step), what the job
// used of its request, and dated sentences with the numbers behind each decision. The package
// never decides or measures: a missing number is called missing.
package story
