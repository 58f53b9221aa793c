// Package plan replays whole recorded jobs through the controller: did moving them pay?
//
// In come tables of trials (what an epoch cost under each setting) and choices; out comes
// a row for each workload, machine and length: how many jobs were moved, how many of them
// cost less than if they had never been moved and how many more, by how much, and how far
// that is from the best setting from the start. Beside it stands a tuner that always goes
// to the best setting that it found, without asking whether that pays.
//
// A job starts under its owner's settings and is looked at by the very loop of package
// reconcile, with the stages that the daemon has: the same states, the same planner, search
// and verifier, the same budgets. Only what surrounds them is recorded: a scheduler with
// one job whose epochs take what the table says, and a clock that the replay moves. What
// the controller sees has the noise of the recorded repeats, or, where a cell has none that
// differ, the noise asked for; what a job cost is told in expectation, so that luck pays
// for nothing.
//
// Each job may come again, to a site that remembers what its runs taught: that is kept and
// derived by package knowledge, as the controller does it, and told apart from what jobs
// cost that were met for the first time. What other kinds of a class taught is left out,
// since tables of trials have no profiles to tell classes by.
//
// Within one job only those knobs move that leave alone what it learns: a batch size stays
// as its owner has it. Memory stays too: nothing about its effect is found out by trying.
// The same files, choices and seed give the same report.
package plan
