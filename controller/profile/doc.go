// Package profile is where epochs meet exporter windows: the progress marks of
// one attempt cut its samples into epochs, and the epochs after warm-up become
// one Profile whose features can be compared with those of other jobs.
//
// It takes api.Window values and a Spec, and returns tuning.Epoch, tuning.Profile, and
// a tuning.Reason where there is no usable profile yet. What is missing stays
// missing: it is never taken for zero. What limits a profile's worth is a flag of
// it. The package trusts no mark that cannot be true, never talks to an exporter, never
// reads a clock, and never decides what a profile resembles.
package profile
