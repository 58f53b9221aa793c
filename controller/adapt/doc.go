// Package adapt decides whether a job that runs should take one of the actions that it offers,
// such as to widen its network, by the time left and by what became of earlier runs.
//
// Input: earlier runs, with the actions that each took, the epochs left at each, and how much better it
// ended than undisturbed. Output: a Model, which expects the gain of any further actions and
// knows how sure that is, and a Choice: an action, or none where the evidence does not carry one.
// What an action does to the first epochs after it is not asked for: over recorded runs it says
// nothing about the end (correlations from -0.4 to 0.1 within five times 64 runs, none of them
// steady), and the time left says nearly all.
//
// The package is pure. It never takes an action that it has no runs of for a good one; to try such
// is the owner's choice.
package adapt
