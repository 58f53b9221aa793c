// Package tuner replays jobs that return, on recorded trials: at each return the tuner
// picks settings, pays what they were measured to cost, and learns.
//
// In come tables of trials; out comes a row for each workload and machine: what the
// settings found cost and what finding them did, against the owner's settings, an oracle
// and simpler policies. A run goes on epoch by epoch: what is measured within it is paid
// as part of it. A run that does not reach its end is stopped by rule, paid, and run
// again under the best settings known, paid too, since its owner wants the result.
//
// Where there is no column of epochs a run counts as one epoch, and each return is one of
// the recorded repeats: what is paid is what the tuner sees. A repeat that failed never
// reaches its end; the cost of a setting is the mean over the repeats that ran. A setting
// that lacks a number which the goal needs is absent. The owner's settings are those that
// were asked for, or the nearest that reach their end. What breaks a limit saves nothing.
//
// Beside that, each table is replayed as a job that cannot be moved: every return runs as a
// whole under one point, at most as many of them as there are probes try one, and never
// more than half. That is recur.Whole, by which the controller gives settings to a job
// before it starts (search.Returning turns its policy and history into the same terms; a
// test holds both to the same choices). Within a run the tuner itself is replayed, epoch by
// epoch, as a job could do that changes its settings for nothing: the controller has no use
// for that, since a move costs a checkpoint there, and probes by package search. What of
// this the controller reaches is told by the columns of whole runs, and held by the tests.
//
// The tuner is the code of controller/search/recur. It sees what it paid for and nothing
// else; only the replay knows the table. The same files, choices and seed give the same
// report.
package tuner
