// Package figure draws what a hyperparameter search did, as SVG or PNG of 800 by 500 pixels.
//
// Input: a searcher with its plan and its trials. Output: one picture of the best value so far over time
// or joules, the hyperparameters of all trials side by side, the Pareto front, or the life of each trial
// with its rungs and pauses. Colour-blind readers can tell the colours apart, and the fonts come
// with the program, so that the same search gives the same picture everywhere.
//
// The package never draws an empty picture: where a search has nothing to show, Draw writes nothing and
// says what is missing. It is pure apart from the writer.
package figure
