// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// It takes a tuning.State, all that is known at one moment, and returns a tuning.Decision
// with a Reason and what it rests on: class, forecast, prices, budgets, and each alternative
// with its predicted cost. The package does no I/O, reads no clock, remembers nothing, and
// names no setting outside of the policy that it was given. When in doubt it holds.
//
// One rule of net benefit decides: what the rest of the job saves must exceed the price of the
// restarts, their wait in the queue included, by the site's margin. Away from the owner's
// settings the low end of the saving's 80 % interval counts; on the way back its value does,
// without the margin. A probe is priced with what its epochs may lose. While what is left is
// unknown, nothing that runs is moved. A change that may overrun a budget which the owner's
// settings keep is held. A job that will overrun its budget under those too is tuned, and says so.
//
// What other jobs taught is used until this job has measured the same itself. A knob that
// changes what a job learns (tuning.Policy.Learns) changes only before a start, by what whole
// runs have shown (tuning.Returns). A job that was changed before its start has no measurement
// of its owner's settings: where it runs clearly slower than its kind did untuned, that is
// made once, as a probe.
//
// Package respond predicts what settings of system knobs do. Where that is sure at 95 %, the
// job moves there at once and the move is verified. Else, or where a probe is expected to save
// much more, the setting that promises most is tried. A job that nothing was changed of is
// disturbed only where a saving is likely, or much is expected. A job that has not started, and
// of whose kind no better setting is known, begins under a predicted one only where that is
// sure, since nothing may stop it.
//
// Tuning that does not work out costs a job at most a twentieth of its objective, restarts
// included. What could cost more is not tried. A job whose setting has cost as much, is
// hopeless, or is surely slower than its owner allows leaves it at once.
package plan
