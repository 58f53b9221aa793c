// Package tuner replays jobs that return, on recorded trials: at each return the tuner
// picks settings, pays what they were measured to cost, and learns.
//
// In come tables of trials; out comes a row for each workload and machine: what the
// settings found cost and what finding them did, against the owner's settings, an oracle
// and simpler policies. A run goes on epoch by epoch: what is measured within it is paid
// as part of it. A run that does not reach its end is stopped by rule, paid, and run
// again under the best settings known, paid too, since its owner wants the result.
//
// The tuner is the code of controller/search/recur. It sees what it paid for and nothing
// else; only the replay knows the table. The same files, choices and seed give the same
// report.
package tuner
