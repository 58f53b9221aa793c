// Package classifier measures the controller's classes on recorded runs: are further
// executions of known programs recognised, is a program that was never learned
// called unknown, and does the class's setting suit another input.
//
// In come tables of samples, and for the regret tables of trials beside them; out
// comes an evaluate.Report. Classes are learned and asked by classify.Fit and
// Model.Classify as the controller does it, with its default configuration, from
// features that package counters or package profile makes. Whole executions are held
// out, never parts of one. Nobody tells how many classes there are. The package never
// compares different sets of counters, machines or core counts, so that each of these has
// classes of its own; never sums a gauge as if it counted; and never counts a refusal as an
// answer.
package classifier
