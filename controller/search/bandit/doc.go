// Package bandit proposes the next settings to measure by Thompson sampling over the
// levels of each knob.
//
// In come the levels of finite candidates (see package design), what was measured at
// some of them, and a source of randomness; out comes a candidate. Each level of each
// knob is an arm with an effect of its own on the logarithm of the outcome, and effects
// of knobs add up. The effects are drawn from what the measurements leave open, and the
// candidate that would be best if the draw were true is measured next. Nothing is known
// about levels that are neighbours: a bandit serves words and single knobs, and is what
// the smoother model of package gauss has to beat.
//
// The package is pure: it holds no state and draws only from the generator given. It
// never proposes what was measured.
package bandit
