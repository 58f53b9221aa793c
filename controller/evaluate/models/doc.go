// Package models compares what the controller's models say with what was recorded: the
// ends of learning curves (Forecast), the classes of programs (Classifier), the settings
// that a class suggests (Regret), and verdicts on changes (Verify).
//
// Input: tables of trials, samples and curves; output: one evaluate.Report. The models are
// those of the controller. No model sees what it is asked about: curves are cut, whole
// executions and inputs are left out, and the regret of a choice is judged in repeats that
// chose neither it nor its optimum. The same tables, choices and seed give the same report.
//
// # Forecast
//
// Runs are taken in the order of the file, as jobs that return: a forecast learns from the
// runs before it and never from a later one. A refused forecast is unknown, not an error.
//
// # Classifier
//
// Runs on other machines, under other core counts or with other counters are never
// compared: each such stratum has its own classes. The number of classes is not given.
//
// # Regret
//
// Each input is left out in turn. It is profiled under its default alone, gets a class, and
// the planner decides by what is known of the class. A repeat is a block of runs, one of
// each setting. The regret of a choice is its cost in one repeat over that of the setting
// that was cheapest in the other repeats, so that the best of noisy numbers does not look
// better than it is (the winner's curse); that makes it a little too small. The regret in
// hindsight, over the cheapest of all repeats, is a little too large: the truth is between
// them. Core-seconds stand for joules where none are measured.
//
// # Verify
//
// Where nothing was changed, nothing has an effect: repeats of one setting and epochs of
// one run are the recorded nulls; noise of known kinds makes the simulated ones. An effect
// is put in by making the tuned side shorter. A null that breaks what an interval relies on
// has a limit and is summed up apart.
//
// The package never asks about runs that failed, never sums a gauge as if it counted, and
// counts nothing missing as zero.
package models
