// Package record runs a factorial of commands and settings for real and writes down
// what it measured, in the formats of package records, so that a site can judge the
// tuner on its own programs.
//
// In come a Plan, a folder, a Meter and Rooms; out come trials.csv, curves.csv and
// samples.csv, and a Result that says what could not be measured. Runs come one at a
// time: each repeat has the inputs in a random order of its own, and the settings of an
// input one after the other, in random order too. Each run is in a room of its own (a
// cgroup) that the meter knows before the command begins, and in a scratch folder that is
// removed. Each run that ended is kept in a file of its own, written at once or not at
// all, so that an interrupted recording goes on where it stopped. What was not measured
// is an empty cell. What others on the machine did meanwhile is recorded beside each
// run; one that they disturbed, by the rule of package profile, is made again as often as
// the plan says and marked where that does not help: which of them is kept is never
// chosen by what it took. The package never runs more than one command at a time, never
// takes a failed run for a measurement, and never mixes the runs of two plans in a folder.
//
// trials.csv has beside the columns of its format: input (which, from 1), repeat,
// attempts, others_cores (that others kept busy, in the mean), steal_share (of the
// machine's CPU time that the hypervisor took), disturbed (0 or 1), node_cores and
// started_seconds (since the first run began).
//
// One goroutine reads the output of the command that runs; it has ended when the run
// has.
package record
