// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// In comes a tuning.State, everything there is to know at one moment; out goes a
// tuning.Decision with a Reason and the numbers behind it. "Do nothing" is a
// decision with a reason too. The package never does I/O, never reads a clock,
// never remembers, and never names a setting outside of the policy that it was
// given. When in doubt it holds.
//
// A branch is made only where it is worth it: what the remaining work is
// predicted to save must exceed the cost of the restarts by the site's margin.
package plan
