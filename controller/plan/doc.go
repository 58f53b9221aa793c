// Package plan decides what to do with a job: hold, probe, move or roll back.
//
// Input: a tuning.State, all that is known at one moment. Output: a tuning.Decision with a Reason
// and what it rests on. The package does no I/O, reads no clock, remembers nothing, and names no
// setting outside of its policy. When in doubt it holds.
//
// What the rest of the job saves must exceed the price of the restarts, their wait in the queue
// included, by the site's margin. Away from the owner's settings the low end of the saving's 80 %
// interval counts; on the way back its value does, without the margin. A change that may overrun a
// budget which the owner's settings keep is held.
//
// What other jobs taught is used until this job has measured the same itself. A knob that changes
// what a job learns changes only before a start, by what whole runs have shown. Where a prediction
// of package respond is sure at 95 %, the job moves at once and the move is verified; else the
// setting that promises most is tried. A job that was changed before its start and runs clearly
// slower than its kind did untuned probes its owner's settings once.
//
// Tuning that does not work out costs a job at most a twentieth of its objective, restarts
// included: what could cost more is not tried, and what has cost as much is left at once.
package plan
