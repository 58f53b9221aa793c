// Package results says what a hyperparameter search found.
//
// Input: a searcher with its plan and its trials. Output: the Pareto front of several measures, the
// knobs that mattered and how sure that is, and exports as CSV and JSON.
//
// A missing number is never 0: a trial whose joules were not measured is in no front over joules. Trials
// that ended early are compared with others after the same epochs only. The package is pure.
package results
