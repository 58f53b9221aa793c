// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// In comes a tuning.State, everything there is to know at one moment; out goes a
// tuning.Decision with a Reason and the numbers behind it. "Do nothing" is a
// decision with a reason too. The package never does I/O, never reads a clock,
// never remembers, and never names a setting outside of the policy that it was
// given. When in doubt it holds.
//
// A branch is made only where it is worth it, by one rule: what the rest of the job
// saves, as the forecast tells what is left, must exceed the price of the restarts by
// the site's margin. Away from the owner's settings the low end of the saving's 80 %
// interval decides; on the way back to them its value. The price of a restart is its
// measured cost and the wait in the queue; where the wait alone makes it too dear, the
// reason says so and the job is looked at again. A probe is priced with what its epochs
// may lose. Where nobody knows what is left, nothing that runs is moved.
//
// A change that may, by the high end of what it would use, overrun a budget which the
// owner's settings keep is held. A job that overruns it anyway is told so, and tuned.
//
// Every decision carries what it rests on: class, forecast, prices, budgets, and each
// alternative with its predicted cost and why it was not taken.
//
// What other jobs taught is used until this job has measured the same thing
// itself; from then on its own numbers count. A job that was changed before its
// start has no measurement of its owner's settings. Where it runs clearly slower
// than its kind did untuned, that measurement is made: once, as a probe.
//
// What nobody has measured promises half of what it may bring at most: half of what more
// cores or threads take over, half of what the cube law allows of joules where a
// processor's power or clock is limited (and nothing of time; such knobs, and those that
// count workers, are told by their names), half of everything for a hyperparameter, and
// else what the site expects of an unknown setting (tuning.Site.ExpectedSaving). It costs, while it is tried, half of what it takes away at
// most, and where the owner bounds the slowdown it promises as much less as it is likely to
// be slower than that. On recorded runs, where the best setting saved 1 % of the time and
// 4 % of the joules in the mean (2 % by fewer cores, 12 % by less power), a planner that
// hoped for half everywhere hurt more often than it paid.
package plan
