// Package adapt decides whether a job that runs should take one of the actions that it offers,
// such as to widen its network, by the time left and by how earlier runs ended.
//
// Input: earlier runs, with the actions that each took, the epochs left at each, and how much better it
// ended than undisturbed. Output: a Model, which predicts the gain of further actions and how sure that
// is, and a Choice: an action, or none where the evidence is too thin. The effect of an action on the
// first epochs after it does not count: over recorded runs it says nothing about the end (correlations
// from -0.4 to 0.1 within five times 64 runs, none of them steady), and the time left says nearly all.
//
// The package is pure. An action that no run took never counts as good; trying it is the owner's
// choice.
package adapt
