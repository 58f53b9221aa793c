// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// In comes a tuning.State, everything there is to know at one moment; out goes a
// tuning.Decision with a Reason and the numbers behind it. "Do nothing" is a
// decision with a reason too. The package never does I/O, never reads a clock,
// never remembers, and never names a setting outside of the policy that it was
// given. When in doubt it holds.
//
// A branch is made only where it is worth it: what the remaining work is
// predicted to save must exceed the price of the restarts by the site's margin.
// The price of one is its measured cost and the wait in the queue; where the
// wait alone makes it too dear, the reason says so and the job is looked at again.
//
// What other jobs taught is used until this job has measured the same thing
// itself; from then on its own numbers count. A job that was changed before its
// start has no measurement of its owner's settings. Where it runs clearly slower
// than its kind did untuned, that measurement is made: once, as a probe.
package plan
