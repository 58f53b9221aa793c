// Package record runs a factorial of commands, inputs and settings for real and writes what
// it measured as tables of package records: trials.csv, curves.csv and samples.csv.
//
// Input: a Plan, a folder, a Meter and Cgroups; output: the tables and a Result that says
// what could not be measured. Runs come one at a time: each repeat has the inputs in its
// own random order, and the settings of an input one after the other, in random order too.
// Each run has a scratch folder and its own cgroup, which the meter knows before the
// command begins. Each run that ended has its own file, written atomically, so that an
// interrupted recording goes on where it stopped; what failed is made again. What was not
// measured is an empty cell.
// What others on the machine did meanwhile is recorded with each run. A run that they
// disturbed, by the rule of package profile, is repeated as often as the plan says, and
// marked where that does not help. Which repeat is kept never depends on what it took.
//
// Besides the columns of its format trials.csv has: input (which, from 1), repeat,
// attempts, others_cores (that others kept busy, on average), steal_share (of the
// machine's CPU time that the hypervisor took), disturbed (0 or 1), node_cores and
// started_seconds (since the first run began).
//
// The package never runs more than one command at a time, never takes a failed run for a
// measurement, and never mixes the runs of two plans in a folder. One goroutine reads the
// output of the command; it has ended when the run has.
package record
