// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// It takes a tuning.State, all that is known at one moment, and returns a tuning.Decision
// with a Reason and the numbers behind it. "Do nothing" is a decision with a reason too.
// The package does no I/O, reads no clock, remembers nothing, and names no setting outside
// of the policy that it was given. When in doubt it holds.
//
// A branch is made only where it is worth it, by one rule: what the rest of the job
// saves, as the forecast tells what is left, must exceed the price of the restarts by
// the site's margin. Away from the owner's settings the low end of the saving's 80 %
// interval decides; on the way back to them its value. The price of a restart is its
// measured cost and the wait in the queue; where the wait alone makes it too dear, the
// reason says so and the job is looked at again. A probe is priced with what its epochs
// may lose. While what is left is unknown, nothing that runs is moved.
//
// A change that may, by the high end of what it would use, overrun a budget which the
// owner's settings keep is held. A job that overruns it anyway is told so, and tuned.
//
// Every decision carries what it rests on: class, forecast, prices, budgets, and each
// alternative with its predicted cost and why it was not taken.
//
// What other jobs taught is used until this job has measured the same thing
// itself; from then on its own numbers count. A knob that changes what a job learns
// (tuning.Policy.Learns) changes only before a start, by what whole runs have shown
// (tuning.Returns): no epoch, of this job or of others, is a reason to move it. A job that
// was changed before its start has no measurement of its owner's settings. Where it runs
// clearly slower than its kind did untuned, that measurement is made: once, as a probe.
//
// What a setting of a system knob does is predicted by package respond, from the CPU time
// that the job's first epochs used, its own trials, and what its kind and class showed. Where
// that is sure at 95 %, the job moves there at once and the move is verified. Else, or where
// a probe is expected to save much more than what is sure, the setting that promises most is
// tried. A setting is left as slower than its owner allows where that is likely by the epochs
// and by the model.
//
// A job that has not started, and of whose kind no better setting is known, begins under one
// that is predicted so, from what an untuned run of the kind made of its cores: only where
// that is sure, since nothing may stop such a job.
//
// Tuning that does not work out costs a job at most a twentieth of its objective: restarts
// and epochs under worse settings included. What could cost more is not tried. A job whose
// setting has cost as much, is hopeless, or is surely slower than its owner allows returns
// at once; the running epoch counts, disturbed or not.
package plan
